// Package now is the page Now of the console: how the service stands and did in the last hour for its operators, and the
// same of one workspace for its keys; and the providers that are left alone, which operators pause and resume.
//
// Rules it guards: a key's page holds numbers of its workspace alone; what is read is bounded and, for the whole service,
// read once in two seconds however many look. It belongs to the httpapi family and may import the use cases and the domain.
package now
