// Package settings is the section Settings of the console: how conversations are read, and what holds for the workspace:
// its state, limits, prices and how long things are kept.
//
// Rules it guards: who may read the workspace's memories sees it; the extraction policy is changed by who may administer,
// with the rules of the API; state and limits are changed by operators alone; prices and retention are the service's and
// are only shown. It belongs to the httpapi family and may import the use cases and the domain.
package settings
