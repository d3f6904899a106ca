package seal

import (
	"container/list"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Cache keeps the keys that were used last, each until its time is over. It is safe for concurrent use.
type Cache struct {
	most  int
	now   func() time.Time
	mu    sync.Mutex
	found map[uuid.UUID]*list.Element
	order *list.List // the latest used first
}

type cached struct {
	of    uuid.UUID
	key   Key
	until time.Time
}

// NewCache keeps at most so many keys. Now is a clock that never goes back, time.Now if nil.
func NewCache(most int, now func() time.Time) *Cache {
	if now == nil {
		now = time.Now
	}
	return &Cache{most: max(most, 1), now: now, found: map[uuid.UUID]*list.Element{}, order: list.New()}
}

// Get returns what was put under the id, if its time is not over.
func (c *Cache) Get(of uuid.UUID) (Key, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.found[of]
	if e == nil {
		return Key{}, false
	}
	entry, _ := e.Value.(cached)
	if !c.now().Before(entry.until) {
		c.remove(e)
		return Key{}, false
	}
	c.order.MoveToFront(e)
	return entry.key, true
}

// Put keeps a key under an id for so long. The one that was used longest ago makes room.
func (c *Cache) Put(of uuid.UUID, key Key, lasting time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.found[of]; e != nil {
		c.remove(e)
	}
	for c.order.Len() >= c.most {
		c.remove(c.order.Back())
	}
	c.found[of] = c.order.PushFront(cached{of, key, c.now().Add(lasting)})
}

// Drop forgets what was put under the id.
func (c *Cache) Drop(of uuid.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.found[of]; e != nil {
		c.remove(e)
	}
}

// Len is how many keys are kept.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

func (c *Cache) remove(e *list.Element) {
	if entry, ok := c.order.Remove(e).(cached); ok {
		delete(c.found, entry.of)
	}
}
