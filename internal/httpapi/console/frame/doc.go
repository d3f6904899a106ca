// Package frame is what every page of the console stands in: who is signed in, whose workspace it is about, the layout,
// the style, and how a page renews a part of itself.
//
// Rules it guards: a browser holds a random name of its session and no secret of its user's; at every request the
// session's key or operator is looked up anew; a request that may change something comes from a page of this console that
// was made for this session; a page of a workspace is reached by its own keys and by operators, and is not there for
// anybody else; everything that a page needs comes from this server, by a policy that allows no script and no style in
// the page itself. It belongs to the httpapi family and may import the domain.
package frame
