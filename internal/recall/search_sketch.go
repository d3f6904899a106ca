package recall

import (
	"math"

	"github.com/holdfast-memory/holdfast/internal/model"
)

// A sketch is a vector in numbers of seven bits, eight to a word. It tells a cosine with a known error, in a quarter of the
// memory and of the time that the vector takes: enough to leave out what can't be among the best, and no more.
//
// Every second number of a word, with sixteen bits for each, makes a word that one multiplication takes four numbers of at
// once: times a word in the opposite order, its highest sixteen bits are the sum of four products. What is added below
// them is at most three times 127², so that nothing is carried into them, and what is above them is lost.
const (
	perWord = 8
	evens   = 0x00ff00ff00ff00ff
	zero    = 64 // what stands for 0; the numbers go from 1 to 127
	levels  = 63
	// leastLength is the square of the length below which products of 32 bits would lose too much of their numbers.
	leastLength = 1e-30
)

// sketchWords answers how many words a sketch of a vector of the size has.
func sketchWords(size int) int { return (size + perWord - 1) / perWord }

// sketched is what there is to know of a sketch beside its words: the size of a step, the sum of its numbers, and how far
// it is from the vector, as a part of the vector's length.
type sketched struct {
	step float64
	sum  uint64
	off  float64
}

// sketch appends the words of v to words. A vector with next to no length, or with a number that is none, has an infinite error.
func sketch(words []uint64, v model.Vector) ([]uint64, sketched) {
	most := 0.0
	for _, x := range v {
		most = math.Max(most, math.Abs(float64(x)))
	}
	about, perStep, length, missed := sketched{step: most / levels}, levels/most, 0.0, 0.0
	usable := most > 0 && !math.IsInf(perStep, 0) && !math.IsInf(most, 0)
	for at := 0; at < len(v); at += perWord {
		word := uint64(0)
		for i := range perWord {
			level := 0.0
			if usable && at+i < len(v) {
				x := float64(v[at+i])
				level = math.Round(x * perStep)
				length, missed = length+x*x, missed+(x-level*about.step)*(x-level*about.step)
			}
			number := uint64(int64(level) + zero) // #nosec G115 -- from 1 to 127
			about.sum += number
			word |= number << (8 * i)
		}
		words = append(words, word)
	}
	if about.off = math.Sqrt(missed / length); !usable || !(length >= leastLength) {
		about.off = math.Inf(1)
	}
	return words, about
}

// mirrored makes of a question's sketch what product takes: for each word its first and its second four lanes, in the opposite
// order.
func mirrored(words []uint64) []uint64 {
	made := make([]uint64, 0, 2*len(words))
	for _, w := range words {
		for _, half := range []uint64{w & evens, w >> 8 & evens} {
			made = append(made, half>>48|half>>16&0xff0000|half<<16&0xff00000000|half<<48)
		}
	}
	return made
}

// product is the sum of the products of the numbers of a sketch and a mirrored one.
func product(words, question []uint64) uint64 {
	const top = 48
	var s0, s1, s2, s3 uint64
	for len(words) >= 2 && len(question) >= 4 {
		w, q := (*[2]uint64)(words), (*[4]uint64)(question)
		s0 += (w[0] & evens) * q[0] >> top
		s1 += (w[0] >> 8 & evens) * q[1] >> top
		s2 += (w[1] & evens) * q[2] >> top
		s3 += (w[1] >> 8 & evens) * q[3] >> top
		words, question = words[2:], question[4:]
	}
	if len(words) == 1 && len(question) == 2 {
		s0 += (words[0]&evens)*question[0]>>top + (words[0]>>8&evens)*question[1]>>top
	}
	return s0 + s1 + s2 + s3
}

// rounding is more than adding up size products in 32 bits can be wrong by, for a cosine and both lengths, each time in
// four sums: 16 times as much.
func rounding(size int) float64 { return float64(size+perWord) / (1 << 21) }

// cosineOf answers the cosine that two sketches of so many words tell, given their product, and how far from it the one of
// their vectors can be.
func cosineOf(product uint64, words int, a, b sketched, lengthA, lengthB float64) (cos, err float64) {
	sum := float64(int64(product) - zero*int64(a.sum+b.sum) + zero*zero*perWord*int64(words)) // #nosec G115 -- far below 2^63
	return sum * a.step * b.step / (lengthA * lengthB), a.off + b.off + a.off*b.off
}
