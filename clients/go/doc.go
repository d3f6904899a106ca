// Package holdfast is the client of Holdfast, the service for durable memory writes.
//
// A write is accepted with a receipt, and the event that the receipt names tells the one truthful outcome:
//
//	client, err := holdfast.New("http://127.0.0.1:8765", os.Getenv("HOLDFAST_API_KEY"))
//	if err != nil {
//		return err
//	}
//	receipt, err := client.Add(ctx, holdfast.AddRequest{
//		Scope:    holdfast.User("ada"),
//		Messages: []holdfast.Message{{Role: "user", Content: "I moved to Lisbon in May."}},
//	})
//	if err != nil {
//		return err // holdfast.KeyOf(err) is the key to send the same request with again
//	}
//	event, err := client.Events.Wait(ctx, receipt.EventID)
//
// # Keys
//
// A write goes out under an Idempotency-Key wherever the service takes one. It is generated unless [WithKey] gives it; either
// way it is in the receipt and in every error. The same request under the same key is the same event, however often it is sent, so that a
// write whose answer got lost is finished by sending it again, by this process or another one.
//
// # Retries
//
// A call that does no harm when it is repeated is repeated after network errors, broken answers, 429, 502, 503, 504, and
// 409 and 500 when their problem says so; always with the same key and the same bytes. Retry-After is a floor, jitter comes
// on top. The number of retries and their time are bounded, and the context always wins: a call whose deadline would pass
// during a pause returns at once. [Items.Correct] has no key and changes what a second call would find: it is not sent again
// once it may have arrived.
//
// # Errors
//
//   - [*Error] the service, or something before it, answered and said no.
//   - [*UnknownError] no answer tells what became of a write. It may have happened: send it again under its Key.
//   - [*NoAnswerError] there is no answer, and nothing was changed.
//   - [*EventFailedError] the write was accepted and has failed; nothing was stored and nothing charged.
//   - [*WaitError] waiting ended before the event did. The event goes on.
//
// Redirects are never followed. The API key is in no error and no text of this package.
package holdfast
