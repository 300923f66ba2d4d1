// Records everything that a page receives through the DevTools protocol, because a stream never ends.
import { createParser } from 'eventsource-parser';
import { EventSourceParserStream } from 'eventsource-parser/stream';

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
    const feed = { lastEventId, bytes: [] };
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
    /** Returns the feed's requests: the event id and the messages of the response. */
    feeds: () => feeds.map(({ lastEventId, bytes }) => ({ lastEventId, messages: messagesOf(bytes) })),
    /** Returns everything received so far, as texts. */
    async everything() {
      await Promise.all(pending);
      return [...texts, ...feeds.map(({ bytes }) => Buffer.concat(bytes).toString('utf8'))];
    },
  };
};

const messageOf = ({ event, id, data }) => ({
  id,
  events: event === undefined ? data.split('\n').map((line) => JSON.parse(line)) : [],
});

/** Parses Server-Sent Events, without an incomplete message at the end. */
const messagesOf = (bytes) => {
  const messages = [];
  const { feed } = createParser({ onEvent: (message) => messages.push(messageOf(message)) });
  feed(Buffer.concat(bytes).toString('utf8'));
  return messages;
};

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
