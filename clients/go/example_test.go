package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	holdfast "github.com/holdfast-memory/holdfast/clients/go"
)

func Example() {
	client, err := holdfast.New(os.Getenv("HOLDFAST_URL"), os.Getenv("HOLDFAST_API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	event, err := client.AddAndWait(ctx, holdfast.AddRequest{
		Scope: holdfast.User("maya"),
		Messages: []holdfast.Message{
			{Role: "user", Content: "I work as a nurse and I am allergic to peanuts."},
		},
	})
	if err != nil {
		log.Fatal(err) // holdfast.KeyOf(err) is the key to send the same request with again
	}
	fmt.Println(event.Status)

	memories, err := client.Search(ctx, holdfast.SearchRequest{Scope: holdfast.User("maya"), Query: "What is Maya allergic to?", Limit: 1})
	if err != nil {
		log.Fatal(err)
	}
	for _, memory := range memories {
		fmt.Println(memory.Memory)
	}
	// Output:
	// SUCCEEDED
	// User is allergic to peanuts
}

// A key that is made before the write makes it survive a crash of the caller: store it, and send the same request again
// after a restart.
func ExampleClient_Add() {
	client, err := holdfast.New(os.Getenv("HOLDFAST_URL"), os.Getenv("HOLDFAST_API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	add := holdfast.AddRequest{Scope: holdfast.User("noor"), Content: "I moved to Lisbon in May."}

	key := holdfast.NewKey() // stored with the order

	first, err := client.Add(ctx, add, holdfast.WithKey(key))
	if err != nil {
		log.Fatal(err)
	}
	second, err := client.Add(ctx, add, holdfast.WithKey(key))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.EventID == second.EventID, first.Replayed, second.Replayed)
	// Output: true false true
}

// What to do with each kind of error.
func ExampleUnknownError() {
	client, err := holdfast.New(os.Getenv("HOLDFAST_URL"), os.Getenv("HOLDFAST_API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	add := holdfast.AddRequest{Content: "Nobody said this."}

	receipt, err := client.Add(ctx, add)
	var unknown *holdfast.UnknownError
	var refused *holdfast.Error
	switch {
	case err == nil:
		fmt.Println("accepted", receipt.EventID)
	case errors.As(err, &unknown):
		fmt.Println("it may have happened: later, the same request with", unknown.Key)
	case errors.As(err, &refused) && refused.Retryable:
		fmt.Println("not now: later, the same request with", refused.Key)
	case errors.As(err, &refused):
		fmt.Println("refused:", refused.Code)
	default:
		fmt.Println("the service can't be reached: later, the same request with", holdfast.KeyOf(err))
	}
	// Output: refused: SCOPE_REQUIRED
}

func ExampleEvents_ByKey() {
	client, err := holdfast.New(os.Getenv("HOLDFAST_URL"), os.Getenv("HOLDFAST_API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	key := holdfast.NewKey()
	if _, err := client.AddVerbatim(ctx, holdfast.AddRequest{Scope: holdfast.User("kim"), Content: "The door code is 4711."}, holdfast.WithKey(key)); err != nil {
		log.Fatal(err)
	}
	event, known, err := client.Events.ByKey(ctx, key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(known, event.Type)
	// Output: true memory_add
}

func ExampleItems_Add() {
	client, err := holdfast.New(os.Getenv("HOLDFAST_URL"), os.Getenv("HOLDFAST_API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	var events []string
	for range 2 {
		kept, err := client.Items("lee").Add(ctx, []holdfast.NewItem{{ID: "note-1", Text: "I have a dog called Max."}})
		if err != nil {
			log.Fatal(err)
		}
		events = append(events, kept.Items[0].EventID)
	}
	fmt.Println(events[0] == events[1])
	// Output: true
}

func ExampleMemories_All() {
	client, err := holdfast.New(os.Getenv("HOLDFAST_URL"), os.Getenv("HOLDFAST_API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for memory, err := range client.Memories.All(ctx, holdfast.User("nobody")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(memory.Memory)
	}
	// Output:
}
