// Package credits is the section Credits of the console: the balance, what is held and for which events, the journal, and
// whether the journal adds up to the account.
//
// Rules it guards: nothing here moves credits; an account of another workspace is not there; events are named to who may
// see events; the journal is added up within a bound, and what a bound cut off is never called right or wrong. It belongs
// to the httpapi family and may import the use cases and the domain.
package credits
