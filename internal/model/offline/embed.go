package offline

import (
	"context"
	"hash/fnv"
	"math"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/holdfast-memory/holdfast/internal/model"
)

// dimensions is the length of a vector: small enough to compare without an index, large enough that a
// sentence's features seldom collide.
const dimensions = 256

// embedderModel names the features and their hashing. It changes whenever a vector would.
const embedderModel = "offline-hash-256-v1"

// The weights of a text's features. Parts of words find other forms of a word; function words find nothing.
const (
	wordWeight     = 1.0
	partWeight     = 0.35
	functionWeight = 0.1
	singleWeight   = 0.5 // one ideograph; the pairs carry most of the meaning
)

// Embedder makes vectors out of hashed words, parts of words and pairs of ideographs. It finds texts that share
// words, not texts that share a meaning.
type Embedder struct {
	functionWords map[string]bool
}

// NewEmbedder returns an embedder.
func NewEmbedder() *Embedder { return &Embedder{functionWords: functionWords()} }

// Model names what made the vectors.
func (e *Embedder) Model() string { return embedderModel }

// Provider returns "offline".
func (e *Embedder) Provider() string { return provider }

// Local is true: nothing leaves the process.
func (e *Embedder) Local() bool { return true }

// Check never fails.
func (e *Embedder) Check(context.Context) error { return nil }

// Embed returns a unit vector for each text, the same for the same text everywhere. It fails only when ctx has
// ended.
func (e *Embedder) Embed(ctx context.Context, texts []string) (model.Embedding, error) {
	vectors := make([]model.Vector, len(texts))
	for i, text := range texts {
		if ctx.Err() != nil {
			return model.Embedding{}, model.Unanswered(ctx, ctx.Err(), 0)
		}
		vectors[i] = e.vector(text)
	}
	return model.Embedding{Vectors: vectors}, nil
}

func (e *Embedder) vector(text string) model.Vector {
	var sums [dimensions]float64
	add := func(feature string, weight float64) {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(feature)) // never fails
		h := hash.Sum64()
		if h>>32&1 == 1 {
			weight = -weight
		}
		sums[h%dimensions] += weight
	}
	folded := cases.Fold().String(norm.NFKC.String(text))
	for _, word := range words(folded) {
		e.features(word, add)
	}
	vector, ok := unit(sums)
	if !ok { // no word at all, or features that cancel out
		add("text:"+folded, wordWeight)
		vector, _ = unit(sums)
	}
	return vector
}

// features gives a word's features to add.
func (e *Embedder) features(word string, add func(string, float64)) {
	runes := []rune(word)
	if ideographic(runes[0]) {
		for i := range runes {
			add("i:"+string(runes[i]), singleWeight)
			if i > 0 {
				add("p:"+string(runes[i-1:i+1]), wordWeight)
			}
		}
		return
	}
	if e.functionWords[word] {
		add("w:"+word, functionWeight)
		return
	}
	add("w:"+word, wordWeight)
	marked := []rune("^" + word + "$")
	for i := 0; i+3 <= len(marked); i++ {
		add("n:"+string(marked[i:i+3]), partWeight)
	}
}

// words cuts text at everything that is no letter, mark or digit, and between scripts with and without spaces.
func words(text string) []string {
	var found []string
	var current []rune
	flush := func() {
		if len(current) > 0 {
			found = append(found, string(current))
			current = nil
		}
	}
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r):
			flush()
			continue
		case len(current) > 0 && ideographic(current[0]) != ideographic(r):
			flush()
		}
		current = append(current, r)
	}
	flush()
	return found
}

// ideographic tells scripts that are written without spaces.
func ideographic(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) || r == 'ー'
}

func unit(sums [dimensions]float64) (model.Vector, bool) {
	square := 0.0
	for _, x := range sums {
		square += x * x
	}
	if square == 0 {
		return nil, false
	}
	vector := make(model.Vector, dimensions)
	for i, x := range sums {
		vector[i] = float32(x / math.Sqrt(square))
	}
	return vector, true
}

// functionWords are the words that most memories and most questions share.
func functionWords() map[string]bool {
	found := map[string]bool{}
	for _, word := range strings.Fields(`
		a an the and or of to in on at for with from by as is are was were be been am do does did has have had what which who whom
		when where why how i me my you your he she it its they them their we our this that user s t will would can about
		der die das ein eine einen einem einer und oder in im am an auf zu zum zur mit von vom für ist sind war hat haben was wer wo
		wann wie warum ich mein meine er sie es sein seine nutzer nutzers
		el la los las un una y o de del en a al con por para es son fue ha qué quién dónde cuándo cómo mi su sus usuario le se
		le la les un une et ou de du des en à au aux avec par pour est sont a que qui où quand comment je mon ma mes son sa ses
		utilisateur l d qu`) {
		found[word] = true
	}
	return found
}
