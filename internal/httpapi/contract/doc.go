// Package contract is generated from the OpenAPI document of httpapi: the types of requests and answers, and
// the strict server interface. Nothing is written by hand here.
//
// Rules it guards: the document is the contract, so that code and document can't differ. It imports no package
// of Holdfast.
package contract

//go:generate go tool -modfile=../../../.ci/tools/go.mod oapi-codegen -config oapi-codegen.yaml ../openapi.yaml
