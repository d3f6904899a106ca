import { once } from "node:events";
import { createServer } from "node:http";

/** A receiver of webhooks that keeps what it got. */
export async function webhookReceiver() {
  const received = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
    response.writeHead(204).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    received, url: `http://127.0.0.1:${server.address().port}/hook`,
    close: () => { server.closeAllConnections(); server.close(); },
  };
}
