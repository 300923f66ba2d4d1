// Server-Sent Events written by hand: one `JSON.stringify` a frame, one `write` of the batch for each page, every 16 ms. It repeats nothing to a page that
// returns, and has no bound for a page that is too slow.
export const start = () => {
  const pages = new Set();
  let batch = [];
  setInterval(() => {
    if (batch.length === 0) return;
    const message = `data: ${batch.join('\ndata: ')}\n\n`;
    batch = [];
    for (const page of pages) page.write(message);
  }, 16);
  return {
    handle: (request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
      response.flushHeaders();
      pages.add(response);
      response.once('close', () => pages.delete(response));
    },
    emit: (bytes) => batch.push(JSON.stringify({ type: 'frame', receivedAt: Date.now(), data: bytes.toString() })),
    pages: () => pages.size,
  };
};
