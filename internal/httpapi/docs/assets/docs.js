// Draws the document that this server serves. Nothing is asked of any other host, and a key that is typed in stays in
// this page's memory.
window.SwaggerUIBundle({
  url: "/v1/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  persistAuthorization: false,
  tryItOutEnabled: false,
  validatorUrl: null,
  syntaxHighlight: { activated: true, theme: "agate" },
});
