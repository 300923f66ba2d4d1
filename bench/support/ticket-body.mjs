// The answer to a ticket request (contract, section 2.1), for a sender that accepts all clients.
export const SUBPROTOCOL = 'mmp.trade-batch.v1';

/** Returns the head and the body of the response. */
export const ticketResponse = (wssUrl) => {
  const body = JSON.stringify({
    ticket: 'bench-ticket',
    token_type: 'Bearer',
    expires_at: new Date(Date.now() + 60_000).toISOString(),
    wss_url: wssUrl,
    feed: 'market',
    subprotocol: SUBPROTOCOL,
  });
  const head = ['HTTP/1.1 200 OK', 'Content-Type: application/json', `Date: ${new Date().toUTCString()}`];
  return Buffer.from(`${[...head, `Content-Length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`);
};
