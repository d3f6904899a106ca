// Package memories is the section Memories of the console: who has records, the records of one user, agent, run or app,
// the search among them with the parts of each score, one record with its history, and the erase of all that one has.
//
// Rules it guards: a record of another workspace is not there; what was remembered is shown as text and never as markup;
// an erase is the use case of the API, asked for by who may, on a page that says what it removes, by typing whose memory
// it is, and a form that is sent twice is one erase. It belongs to the httpapi family and may import the use cases and
// the domain.
package memories
