// Package recovery is the section Recovery of the console: after an outage, what failed is retried, or what waits is
// cancelled, all at once.
//
// Rules it guards: it is for operators alone, as the same acts of the admin API; nothing is done before its preview was
// shown and the workspace's name typed; a form has an id of its own, so that sending it twice does nothing twice; what it
// chooses is what its preview has counted, to the moment. It belongs to the httpapi family and may import the use cases
// and the domain.
package recovery
