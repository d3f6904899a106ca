// Package offline is a model without a model: rules that pick the statements worth remembering out of what users
// say, and hashed vectors. It needs no network and no key and answers the same thing every time, so that
// everything runs on a first visit, in tests and in a demo.
//
// It is simple and says so. It knows English, German, Spanish, French, Chinese and Japanese, one sentence at a
// time, and only sentences of the forms in its tables; it doesn't understand, resolve "it" or "there", or count
// dates. It ignores the caller's instructions, and files a fact under a category when a word of the category's name or
// description stands in it, whatever is meant. What an assistant says is never a fact. Where a language lets it,
// a fact is worded in the third person, else it is quoted.
//
// A fact makes a known statement outdated where its tables know that both don't hold: home, employer, profession,
// name, age, marital status, favourites, address and the like, and whether somebody likes, eats or drinks a thing; of
// the same person, and in each other's language too. It is careful: a known statement that says something else
// beside, a fact with "also", a plan, a move of long ago, and whatever isn't in the tables outdate nothing.
//
// Rules it guards: small talk, questions, thanks and requests to the assistant leave nothing behind; the same
// input gives the same answer. It may import model, memory and text libraries.
package offline
