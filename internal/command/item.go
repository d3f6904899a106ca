package command

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

const (
	// MaxItems is how many items one call may send.
	MaxItems = 500
	// MaxItemText is the greatest length of an item's text in characters.
	MaxItemText = 100_000
	// MaxItemID is the greatest length of an item's id in characters.
	MaxItemID = 512
	// MaxItemsBody is the greatest size of a body of items in bytes: five hundred chapters of a conversation, or eighty
	// of the longest items in a script of one byte a character.
	MaxItemsBody = 8 << 20
	// maxItemsKey is where the Idempotency-Key of a batch of items is cut, in characters.
	maxItemsKey = 200
)

// ItemInput is one item as it was sent. Absent members are nil.
type ItemInput struct {
	ID      *string
	Text    string
	At      *string
	Author  *string
	Session *string
}

// Item is one revision of what a caller keeps under an id of its own. Its content is text, author and session.
type Item struct {
	Account string     `json:"account"`
	ID      string     `json:"id"`
	Text    string     `json:"text"`
	Author  string     `json:"author,omitempty"`
	Session string     `json:"session,omitempty"`
	At      *time.Time `json:"at,omitempty"`
	// AtText is the time as it was sent; two texts of one instant name two items.
	AtText string `json:"-"`
}

// ItemsKey reads the Idempotency-Key of a batch of items, which names items and not the call: trimmed and cut to 200
// characters, empty if there is none. Fault INVALID_IDEMPOTENCY_KEY for several lines and for what is no text.
func ItemsKey(headerValues []string) (string, error) {
	if len(headerValues) == 0 {
		return "", nil
	}
	if len(headerValues) > 1 {
		return "", badKey("one header line")
	}
	key := strings.TrimSpace(headerValues[0])
	if !storable(key) {
		return "", badKey("valid UTF-8 without NUL")
	}
	if runes := []rune(key); len(runes) > maxItemsKey {
		key = string(runes[:maxItemsKey])
	}
	return key, nil
}

// NewItems returns the items that inputs ask for, each with its id: its own; else key and its place among all items
// of the batch, from 0; else, with a time, an id made of its words, author, session and time text; else a random
// one. Account, session and author are trimmed. Faults: INVALID_REQUEST with pointer and rule.
func NewItems(account, key string, inputs []ItemInput) ([]Item, error) {
	if len(inputs) == 0 || len(inputs) > MaxItems {
		return nil, fault.At(fault.InvalidRequest, "/items", "1 to 500 items")
	}
	items := make([]Item, len(inputs))
	for i, input := range inputs {
		item, err := newItem(account, input)
		if err != nil {
			return nil, itemFault(i, err)
		}
		if input.ID == nil {
			item.ID = generatedID(key, i, item)
		}
		items[i] = item
	}
	return items, nil
}

// itemFault places a fault of one item among all of them.
func itemFault(place int, err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	return fault.At(f.Code, "/items/"+strconv.Itoa(place)+f.Pointer, f.Rule)
}

func newItem(account string, input ItemInput) (Item, error) {
	item := Item{Account: account, Text: input.Text}
	if Blank(item.Text) {
		return Item{}, blankAt("/text")
	}
	if !storable(item.Text) || utf8.RuneCountInString(item.Text) > MaxItemText {
		return Item{}, fault.At(fault.InvalidRequest, "/text", "at most 100000 characters of valid UTF-8 without NUL")
	}
	if input.ID != nil {
		if err := checkItemID("/id", *input.ID); err != nil {
			return Item{}, err
		}
		item.ID = *input.ID
	}
	var err error
	if item.Author, err = optional("/author", input.Author, maxName); err != nil {
		return Item{}, err
	}
	if item.Session, err = optional("/session", input.Session, MaxScope); err != nil {
		return Item{}, err
	}
	if input.At != nil {
		if item.At, err = itemTime(*input.At); err != nil {
			return Item{}, err
		}
		item.AtText = *input.At
	}
	return item, nil
}

func checkItemID(pointer, id string) error {
	if Blank(id) || !storable(id) || utf8.RuneCountInString(id) > MaxItemID {
		return fault.At(fault.InvalidRequest, pointer, "1 to 512 characters, something visible among them")
	}
	return nil
}

// optional trims a text that may be absent; one without anything visible is absent too.
func optional(pointer string, given *string, limit int) (string, error) {
	if given == nil || Blank(*given) {
		return "", nil
	}
	text := strings.TrimSpace(*given)
	if !storable(text) || utf8.RuneCountInString(text) > limit {
		return "", fault.At(fault.InvalidRequest, pointer, "at most "+strconv.Itoa(limit)+" characters of valid UTF-8 without NUL")
	}
	return text, nil
}

// itemTime reads an RFC 3339 time with its offset; seconds may be left out.
func itemTime(text string) (*time.Time, error) {
	at, err := time.Parse("2006-01-02T15:04Z07:00", text)
	if err != nil {
		if err = at.UnmarshalText([]byte(text)); err != nil || strings.Contains(text, ",") {
			return nil, fault.At(fault.InvalidRequest, "/at", "an RFC 3339 time with an offset")
		}
	}
	at = at.UTC().Truncate(time.Microsecond)
	if at.Year() < 1 || at.Year() > 9999 {
		return nil, fault.At(fault.InvalidRequest, "/at", "a year from 1 to 9999")
	}
	return &at, nil
}

// generatedID names an item that has no id of its own.
func generatedID(key string, place int, item Item) string {
	switch {
	case key != "":
		return key + ":" + strconv.Itoa(place)
	case item.At != nil:
		sum := digest("item-words/1", item.Text, item.Author, item.Session, item.AtText)
		return "words:" + hex.EncodeToString(sum[:16])
	default:
		return "random:" + rand.Text()
	}
}

// ItemIDs checks ids that a caller names items by. Fault INVALID_REQUEST.
func ItemIDs(ids []string) error {
	if len(ids) == 0 || len(ids) > MaxItems {
		return fault.At(fault.InvalidRequest, "/ids", "1 to 500 ids")
	}
	for i, id := range ids {
		if err := checkItemID("/ids/"+strconv.Itoa(i), id); err != nil {
			return err
		}
	}
	return nil
}

// ItemKey identifies an item inside a workspace: the SHA-256 of account and item id.
type ItemKey [sha256.Size]byte

// ItemKeyOf returns the key of an account's item.
func ItemKeyOf(account, id string) ItemKey { return digest("item/1", account, id) }

// Key returns the item's key.
func (i Item) Key() ItemKey { return ItemKeyOf(i.Account, i.ID) }

// Content returns what tells one revision of an item from another.
func (i Item) Content() [sha256.Size]byte {
	return digest("item-content/1", i.Text, i.Author, i.Session)
}

// EventID returns the id under which the item's latest task is shown: the same for every send of the item.
func (i Item) EventID(workspace uuid.UUID) string {
	sum := digest("item-event/1", string(workspace[:]), i.Account, i.ID)
	return ItemEventPrefix + hex.EncodeToString(sum[:8])
}

// ItemEventPrefix begins the event id of an item; sixteen hexadecimal digits follow.
const ItemEventPrefix = "ev_"

// IsItemEvent tells whether text has the form of an item's event id.
func IsItemEvent(text string) bool {
	digits, ok := strings.CutPrefix(text, ItemEventPrefix)
	return ok && len(digits) == 16 && strings.Trim(digits, "0123456789abcdef") == ""
}

// Scope returns whose memory the item is: the account is the user, the session the run.
func (i Item) Scope() memory.Scope { return memory.Scope{UserID: i.Account, RunID: i.Session} }

// digest is SHA-256 over a tag and texts, each preceded by its length, so that no two lists share an encoding.
func digest(tag string, texts ...string) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte(tag))
	for _, text := range texts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(text)))
		h.Write(size[:])
		h.Write([]byte(text))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Encode returns the revision as stored for the worker, in Format.
func (i Item) Encode() ([]byte, error) { return encode(i) }

// DecodeItem reads a stored revision as what it asks to remember: one message of its author, said at the item's time.
// It is as strict as Decode.
func DecodeItem(format int, payload []byte) (Add, error) {
	var item Item
	if err := decode(format, payload, &item); err != nil {
		return Add{}, err
	}
	if item.Text == "" || item.Account == "" {
		return Add{}, ErrUnreadable
	}
	return Add{
		Scope: item.Scope(), Infer: true, Ordered: true, EventDate: item.At,
		Messages: []Message{{Role: userRole, Name: item.Author, Content: item.Text}},
	}, nil
}
