package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	holdfast "github.com/holdfast-memory/holdfast/clients/go"
)

// TestAPIKey follows the key to where it must not be.
func TestAPIKey(t *testing.T) {
	t.Parallel()

	t.Run("IsSentToTheService", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, accepted())
		client, _ := s.client(holdfast.WithUserAgent("shop/1.2"))
		if _, err := client.Add(context.Background(), tea); err != nil {
			t.Fatal(err)
		}
		header := s.requests()[0].header
		if header.Get("Authorization") != "Bearer "+apiKey || header.Get("User-Agent") != "shop/1.2" {
			t.Fatalf("got %v", header)
		}
	})

	t.Run("FollowsNoRedirect", func(t *testing.T) {
		t.Parallel()
		for _, status := range []int{301, 302, 303, 307, 308} {
			elsewhere := newScript(t, accepted())
			s := newScript(t, replies(status, "text/html", "moved", "Location", elsewhere.url+"/v1/memories"))
			client, _ := s.client(holdfast.WithHTTPClient(&http.Client{}))
			_, err := client.Add(context.Background(), tea)
			var refused *holdfast.Error
			if !errors.As(err, &refused) || refused.Status != status || len(elsewhere.requests()) != 0 {
				t.Fatalf("%d: %v, and %d requests elsewhere", status, err, len(elsewhere.requests()))
			}
			if len(s.requests()) != 1 {
				t.Fatalf("%d: sent %d times", status, len(s.requests()))
			}
		}
	})

	t.Run("LeavesTheCallersHTTPClientAsItIs", func(t *testing.T) {
		t.Parallel()
		given := &http.Client{}
		if _, err := holdfast.New("http://127.0.0.1:1", apiKey, holdfast.WithHTTPClient(given)); err != nil {
			t.Fatal(err)
		}
		if given.CheckRedirect != nil {
			t.Fatal("its rule for redirects was changed")
		}
	})

	t.Run("IsInNoText", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, reset, problem(401, "INVALID_API_KEY", false))
		client, _ := s.client()
		texts := []string{fmt.Sprint(client), fmt.Sprintf("%+v|%#v|%s|%v", client, client, client, *client), fmt.Sprintf("%+v %#v", *client, *client)}
		_, err := client.Add(context.Background(), tea)
		texts = append(texts, err.Error(), fmt.Sprintf("%+v %#v", err, err))
		_, err = holdfast.New("http://user:"+apiKey+"@h\x00st", apiKey)
		texts = append(texts, err.Error())
		_, err = holdfast.New("http://user:"+apiKey+"@host", apiKey)
		texts = append(texts, err.Error())
		_, err = holdfast.New("http://host", apiKey+"\r\nX-Evil: 1")
		texts = append(texts, err.Error())
		for _, text := range texts {
			if strings.Contains(text, "canary") {
				t.Errorf("it is in %q", text)
			}
		}
	})
}

// TestErrors hold nothing of what the caller sent.
func TestErrors(t *testing.T) {
	t.Parallel()
	s := newScript(t, reset)
	client, _ := s.client(holdfast.WithMaxRetries(0))
	ctx := context.Background()
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	_, err := client.Memories.Get(ctx, "marzipan")
	note(err)
	_, err = client.Memories.List(ctx, holdfast.User("marzipan"), holdfast.PageOptions{})
	note(err)
	_, err = client.Memories.EraseScope(ctx, holdfast.User("marzipan"))
	note(err)
	_, err = client.Entities.Get(ctx, holdfast.UserEntity, "marzipan")
	note(err)
	_, err = client.Add(ctx, holdfast.AddRequest{Scope: holdfast.User("marzipan"), Content: "marzipan"})
	note(err)
	_, err = client.Items("marzipan\n").Read(ctx, holdfast.ItemsRead{Session: "marzipan"})
	note(err)
	_, err = client.Add(ctx, holdfast.AddRequest{Content: "marzipan\xff"})
	note(err)
	for i, err := range errs {
		if err == nil || strings.Contains(err.Error(), "marzipan") {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// TestIDs would otherwise address something else than what they name.
func TestIDs(t *testing.T) {
	t.Parallel()
	s := newScript(t, replies(200, "application/json", "{}"))
	client, _ := s.client()
	ctx := context.Background()
	if _, err := client.Memories.Delete(ctx, ""); err == nil {
		t.Error("an empty id names the list")
	}
	if _, err := client.Memories.EraseScope(ctx, holdfast.Scope{}); err == nil {
		t.Error("an empty scope names everybody")
	}
	var unknown *holdfast.UnknownError
	if _, err := client.Items("a\nb").Forget(ctx, "m1"); err == nil || errors.As(err, &unknown) {
		t.Errorf("an account of two lines can't be sent, so that nothing is in doubt: %v", err)
	}
	if len(s.requests()) != 0 {
		t.Fatalf("they were sent: %v", s.requests())
	}
	for _, id := range []string{"..", "a/b?c#d", "%2e"} {
		if _, err := client.Entities.Erase(ctx, holdfast.UserEntity, id); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"/v1/entities/user/%2E%2E", "/v1/entities/user/a%2Fb%3Fc%23d", "/v1/entities/user/%252e"} {
		if got := s.requests()[i].target; got != want {
			t.Errorf("sent %s, not %s", got, want)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "memory.example", "ftp://memory.example", "http://", "http://h?x=1", "http://h#x"} {
		if _, err := holdfast.New(base, apiKey); err == nil {
			t.Errorf("%q was taken", base)
		}
	}
	for _, key := range []string{"", "a b", "a\n", "ä"} {
		if _, err := holdfast.New("http://h", key); err == nil {
			t.Errorf("the API key %q was taken", key)
		}
	}
	for name, opt := range map[string]holdfast.Option{
		"retries": holdfast.WithMaxRetries(-1), "budget": holdfast.WithRetryBudget(0), "attempt": holdfast.WithAttemptTimeout(-1),
		"backoff": holdfast.WithBackoff(2, 1), "agent": holdfast.WithUserAgent("a\r\nb"),
	} {
		if _, err := holdfast.New("http://h", apiKey, opt); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// TestText is sent as it is, or not at all: the encoder would put something else in the place of broken characters.
func TestText(t *testing.T) {
	t.Parallel()
	s := newScript(t, replies(200, "application/json", "{}"))
	client, _ := s.client()
	ctx, bad := context.Background(), "caf\xe9"
	_, content := client.Add(ctx, holdfast.AddRequest{Scope: holdfast.User("ada"), Content: bad})
	_, message := client.AddVerbatim(ctx, holdfast.AddRequest{Scope: holdfast.User("ada"), Messages: []holdfast.Message{{Role: "user", Content: bad}}})
	_, scope := client.Add(ctx, holdfast.AddRequest{Scope: holdfast.User(bad), Content: "a"})
	_, update := client.Memories.Update(ctx, "mem_1", holdfast.Change{Content: bad})
	_, batch := client.Memories.UpdateBatch(ctx, []holdfast.BatchChange{{ID: "mem_1", Change: holdfast.Change{Content: bad}}})
	_, item := client.Items("ann").Add(ctx, []holdfast.NewItem{{ID: "m1", Text: bad}})
	_, correction := client.Items("ann").Correct(ctx, "mem_1", bad)
	for i, err := range []error{content, message, scope, update, batch, item, correction} {
		if err == nil {
			t.Errorf("text %d was sent", i)
		}
	}
	if n := len(s.requests()); n != 0 {
		t.Fatalf("%d requests were sent", n)
	}
}
