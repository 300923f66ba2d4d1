// Records everything that a page receives through the DevTools protocol, because a stream never ends.
import { EventSourceParserStream } from 'eventsource-parser/stream';

/** Records a page's network traffic from now on, across reloads. Returns a function that returns everything received so far, as one text. */
export const recordNetwork = async (page) => {
  const session = await page.context().newCDPSession(page);
  const texts = [];
  /** The bytes of the open streams, by their request. */
  const streams = new Map();
  const pending = new Set();
  const track = (work) => {
    const settled = work.catch(() => undefined).finally(() => pending.delete(settled));
    pending.add(settled);
  };
  page.on('console', (message) => texts.push(message.text()));
  page.on('pageerror', (error) => texts.push(String(error.stack)));

  session.on('Network.responseReceived', ({ requestId, response }) => {
    texts.push(response.url, JSON.stringify(response.headers));
    if (new URL(response.url).pathname !== '/feed') return;
    const bytes = [];
    streams.set(requestId, bytes);
    track(
      session.send('Network.streamResourceContent', { requestId }).then(({ bufferedData }) => {
        bytes.unshift(Buffer.from(bufferedData, 'base64'));
      }),
    );
  });
  session.on('Network.responseReceivedExtraInfo', ({ headersText, headers }) => {
    texts.push(headersText ?? '', JSON.stringify(headers));
  });
  session.on('Network.dataReceived', ({ requestId, data }) => {
    if (data !== undefined) streams.get(requestId)?.push(Buffer.from(data, 'base64'));
  });
  session.on('Network.loadingFinished', ({ requestId }) => {
    if (streams.has(requestId)) return;
    track(
      session.send('Network.getResponseBody', { requestId }).then(({ body, base64Encoded }) => {
        texts.push(base64Encoded ? Buffer.from(body, 'base64').toString('latin1') : body);
      }),
    );
  });
  await session.send('Network.enable');

  return async () => {
    await Promise.all(pending);
    return [...texts, ...[...streams.values()].map((bytes) => Buffer.concat(bytes).toString('utf8'))].join('\n');
  };
};

const messageOf = ({ event, id, data }) => ({
  id,
  events: event === undefined ? data.split('\n').map((line) => JSON.parse(line)) : [],
});

/** Another client of the relay, which gets the same as the page but never reloads. Reads until the test ends or `stop()`. */
export const observe = async (t, url) => {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const response = await fetch(url, { signal: stop.signal });
  const messages = [];
  let [bytes, hasEnded] = [0, false];
  let onChange = () => undefined;
  const read = async () => {
    const counted = new TransformStream({
      transform: (chunk, controller) => {
        bytes += chunk.length;
        controller.enqueue(chunk);
      },
    });
    const texts = response.body.pipeThrough(counted).pipeThrough(new TextDecoderStream());
    for await (const message of texts.pipeThrough(new EventSourceParserStream())) {
      messages.push(messageOf(message));
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
