// Package events is the section Events of the console: the list, and the page of one event with its life, its records and
// its credits, and what can be done about it.
//
// Rules it guards: nothing here reads or shows the input of an event; an event of another workspace is not there; a retry
// and a cancel are the use cases of the API, asked for on a page that names the cost, by who may; keys see that it was
// another worker, and only operators which. It belongs to the httpapi family and may import the use cases and the domain.
package events
