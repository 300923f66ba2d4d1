// Records everything that a page receives through the DevTools protocol, because a stream never ends.

/** Records a page's network traffic from now on, across reloads. */
export const recordNetwork = async (page) => {
  const session = await page.context().newCDPSession(page);
  const texts = [];
  const feeds = [];
  const open = new Map();
  const pending = new Set();
  const track = (work) => {
    const settled = work.catch(() => undefined).finally(() => pending.delete(settled));
    pending.add(settled);
  };
  page.on('console', (message) => texts.push(message.text()));
  page.on('pageerror', (error) => texts.push(String(error.stack)));

  session.on('Network.requestWillBeSent', ({ requestId, request }) => {
    if (new URL(request.url).pathname !== '/feed') return;
    const lastEventId = Object.entries(request.headers).find(([name]) => name.toLowerCase() === 'last-event-id')?.[1];
    const feed = { lastEventId, at: Date.now(), bytes: [] };
    open.set(requestId, feed);
    feeds.push(feed);
  });
  session.on('Network.responseReceived', ({ requestId, response }) => {
    texts.push(response.url, JSON.stringify(response.headers));
    const feed = open.get(requestId);
    if (feed === undefined) return;
    track(
      session.send('Network.streamResourceContent', { requestId }).then(({ bufferedData }) => {
        feed.bytes.unshift(Buffer.from(bufferedData, 'base64'));
      }),
    );
  });
  session.on('Network.responseReceivedExtraInfo', ({ headersText, headers }) => {
    texts.push(headersText ?? '', JSON.stringify(headers));
  });
  session.on('Network.dataReceived', ({ requestId, data }) => {
    if (data !== undefined) open.get(requestId)?.bytes.push(Buffer.from(data, 'base64'));
  });
  session.on('Network.loadingFinished', ({ requestId }) => {
    if (open.has(requestId)) return;
    track(
      session.send('Network.getResponseBody', { requestId }).then(({ body, base64Encoded }) => {
        texts.push(base64Encoded ? Buffer.from(body, 'base64').toString('latin1') : body);
      }),
    );
  });
  await session.send('Network.enable');

  return {
    /** Returns the feed's requests: the event id, the time, and the messages of the response. */
    feeds: () => feeds.map(({ lastEventId, at, bytes }) => ({ lastEventId, at, messages: messagesOf(bytes) })),
    /** Returns everything received so far, as texts. */
    async everything() {
      await Promise.all(pending);
      return [...texts, ...feeds.map(({ bytes }) => Buffer.concat(bytes).toString('utf8'))];
    },
  };
};

/** Parses Server-Sent Events. Ignores data after the last blank line: an incomplete message. */
export const messagesOf = (bytes) => {
  const blocks = Buffer.concat(bytes).toString('utf8').split('\n\n').slice(0, -1);
  return blocks.map((block) => {
    const fields = block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line) ?? []);
    const valuesOf = (field) => fields.filter(([, name]) => name === field).map(([, , value]) => value);
    const [type = ''] = valuesOf('event');
    return { type, id: valuesOf('id')[0], events: type === '' ? valuesOf('data').map((data) => JSON.parse(data)) : [] };
  });
};

/** Another client of the relay, which gets the same as the page but never reloads. Reads until the test ends or `stop()`. */
export const observe = async (t, url) => {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const response = await fetch(url, { signal: stop.signal });
  const messages = [];
  let [bytes, rest, hasEnded] = [0, Buffer.alloc(0), false];
  let onChange = () => undefined;
  const read = async () => {
    for await (const chunk of response.body) {
      bytes += chunk.length;
      const buffer = Buffer.concat([rest, chunk]);
      const end = buffer.lastIndexOf('\n\n') + 2;
      if (end > 1) messages.push(...messagesOf([buffer.subarray(0, end)]));
      rest = end > 1 ? buffer.subarray(end) : buffer;
      onChange();
    }
  };
  void read()
    .catch(() => undefined)
    .finally(() => {
      hasEnded = true;
      onChange();
    });
  return {
    messages: () => messages,
    /** Returns the number of received bytes. */
    bytes: () => bytes,
    /** Waits until the messages pass a test. */
    async until(passes) {
      while (!passes(messages)) {
        if (hasEnded) throw new Error(`${url} ended after ${messages.length} messages.`);
        await new Promise((resolve) => (onChange = resolve));
      }
    },
    stop: () => stop.abort(),
  };
};
