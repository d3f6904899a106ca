package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// answer is a success: it fits every operation of the generated interface, so that headers and exact bytes are
// decided in one place. Body is encoded as JSON; raw, if set, is sent as it is.
type answer struct {
	status int
	header map[string]string
	body   any
	raw    []byte
}

func ok(body any) answer { return answer{status: http.StatusOK, body: body} }

func (a answer) write(w http.ResponseWriter) error {
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	if a.status == http.StatusNotModified {
		w.WriteHeader(a.status)
		return nil
	}
	if a.raw != nil {
		return sendRaw(w, a.status, jsonType, a.raw)
	}
	return send(w, a.status, jsonType, a.body)
}

// encode returns body as JSON with a line feed at its end, texts as they are.
func encode(body any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return out.Bytes(), nil
}

func send(w http.ResponseWriter, status int, mediaType string, body any) error {
	raw, err := encode(body)
	if err != nil {
		return err
	}
	return sendRaw(w, status, mediaType, raw)
}

func sendRaw(w http.ResponseWriter, status int, mediaType string, raw []byte) error {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(raw))) // also of an answer to HEAD
	w.WriteHeader(status)
	if _, err := w.Write(raw); err != nil {
		return fmt.Errorf("send answer: %w", err)
	}
	return nil
}

// The operations an answer fits.

func (a answer) VisitAddMemoriesResponse(w http.ResponseWriter) error         { return a.write(w) }
func (a answer) VisitListMemoriesResponse(w http.ResponseWriter) error        { return a.write(w) }
func (a answer) VisitSearchMemoriesResponse(w http.ResponseWriter) error      { return a.write(w) }
func (a answer) VisitGetMemoryResponse(w http.ResponseWriter) error           { return a.write(w) }
func (a answer) VisitGiveFeedbackResponse(w http.ResponseWriter) error        { return a.write(w) }
func (a answer) VisitGetExtractionPolicyResponse(w http.ResponseWriter) error { return a.write(w) }
func (a answer) VisitSetExtractionPolicyResponse(w http.ResponseWriter) error { return a.write(w) }
func (a answer) VisitListEventsResponse(w http.ResponseWriter) error          { return a.write(w) }
func (a answer) VisitGetEventResponse(w http.ResponseWriter) error            { return a.write(w) }
func (a answer) VisitRetryEventResponse(w http.ResponseWriter) error          { return a.write(w) }
func (a answer) VisitCancelEventResponse(w http.ResponseWriter) error         { return a.write(w) }
func (a answer) VisitListOperationsResponse(w http.ResponseWriter) error      { return a.write(w) }
func (a answer) VisitGetOperationResponse(w http.ResponseWriter) error        { return a.write(w) }
func (a answer) VisitRetryOperationResponse(w http.ResponseWriter) error      { return a.write(w) }
func (a answer) VisitGetCreditsResponse(w http.ResponseWriter) error          { return a.write(w) }
func (a answer) VisitListCreditEntriesResponse(w http.ResponseWriter) error   { return a.write(w) }
func (a answer) VisitGetHealthResponse(w http.ResponseWriter) error           { return a.write(w) }
func (a answer) VisitGetOpenAPIResponse(w http.ResponseWriter) error          { return a.write(w) }
func (a answer) VisitChangeMemoryResponse(w http.ResponseWriter) error        { return a.write(w) }
func (a answer) VisitDeleteMemoryResponse(w http.ResponseWriter) error        { return a.write(w) }
func (a answer) VisitChangeMemoriesResponse(w http.ResponseWriter) error      { return a.write(w) }
func (a answer) VisitDeleteMemoriesResponse(w http.ResponseWriter) error      { return a.write(w) }
func (a answer) VisitGetMemoryHistoryResponse(w http.ResponseWriter) error    { return a.write(w) }
func (a answer) VisitListEntitiesResponse(w http.ResponseWriter) error        { return a.write(w) }
func (a answer) VisitGetEntityResponse(w http.ResponseWriter) error           { return a.write(w) }
func (a answer) VisitEraseScopeResponse(w http.ResponseWriter) error          { return a.write(w) }
func (a answer) VisitEraseEntityResponse(w http.ResponseWriter) error         { return a.write(w) }
func (a answer) VisitExportWorkspaceResponse(w http.ResponseWriter) error     { return a.write(w) }
func (a answer) VisitImportWorkspaceResponse(w http.ResponseWriter) error     { return a.write(w) }
