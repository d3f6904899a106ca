package offline

import (
	"math"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/model"
)

var _ model.Embedder = (*Embedder)(nil)

func vectorsOf(t *testing.T, texts ...string) []model.Vector {
	t.Helper()
	got, err := NewEmbedder().Embed(t.Context(), texts)
	if err != nil || len(got.Vectors) != len(texts) {
		t.Fatalf("%d vectors, %v", len(got.Vectors), err)
	}
	return got.Vectors
}

func cosine(a, b model.Vector) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestEmbed(t *testing.T) {
	t.Parallel()

	t.Run("VectorsHaveUnitLength", func(t *testing.T) {
		t.Parallel()
		for i, vector := range vectorsOf(t, "I like coffee", "咖啡", "قهوة", "!?…", "", "👍", "a", "the of and", "\xff") {
			if len(vector) != dimensions || math.Abs(cosine(vector, vector)-1) > 1e-5 {
				t.Errorf("text %d: %d numbers of length %f", i, len(vector), cosine(vector, vector))
			}
		}
	})

	t.Run("TheSameTextHasTheSameVector", func(t *testing.T) {
		t.Parallel()
		v := vectorsOf(t, "User likes coffee", "User likes coffee", "USER LIKES  Coffee!", "ｃｏｆｆｅｅ", "coffee")
		if cosine(v[0], v[1]) < 0.9999 || cosine(v[0], v[2]) < 0.9999 || cosine(v[3], v[4]) < 0.9999 {
			t.Errorf("%f, %f, %f", cosine(v[0], v[1]), cosine(v[0], v[2]), cosine(v[3], v[4]))
		}
	})

	t.Run("ThisVectorIsPinned", func(t *testing.T) {
		t.Parallel() // a change of features or hashing needs another Model()
		v := vectorsOf(t, "coffee 咖啡")[0]
		at, sum := 0, 0.0
		for i, x := range v {
			if math.Abs(float64(x)) > math.Abs(float64(v[at])) {
				at = i
			}
			sum += float64(x) * float64(i+1)
		}
		if at != pinnedPlace || math.Abs(sum-pinnedSum) > 1e-3 {
			t.Errorf("the largest number is at %d, the weighted sum %.4f", at, sum)
		}
	})

	t.Run("QuestionsFindTheirFacts", func(t *testing.T) {
		t.Parallel()
		facts := []string{
			"User likes coffee with oat milk", "User lives in Hamburg with their husband", "User is allergic to peanuts", "User works as a data engineer",
			"用户喜欢喝咖啡", "用户住在上海", "Nutzer wohnt mit seiner Frau in Köln", "ユーザーは東京に住んでいます", "Al usuario le gusta el café",
		}
		for question, want := range map[string]int{
			"Where does the user live? Hamburg?": 1, "coffee": 0, "What are her allergies?": 2, "engineering work": 3, "咖啡": 4, "上海": 5,
			"Köln": 6, "東京": 7, "café": 8,
		} {
			v := vectorsOf(t, append([]string{question}, facts...)...)
			best := 1
			for i := range v[1:] {
				if cosine(v[0], v[i+1]) > cosine(v[0], v[best]) {
					best = i + 1
				}
			}
			if best-1 != want {
				t.Errorf("%q found %q, want %q", question, facts[best-1], facts[want])
			}
		}
	})
}

const (
	pinnedPlace = 40
	pinnedSum   = 51.6510
)
