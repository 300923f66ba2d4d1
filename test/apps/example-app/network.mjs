// What a page and another client of the relay receive.
import { EventSourceParserStream } from 'eventsource-parser/stream';

/** Records what a page receives from now on, across reloads. Returns a function that returns it as one text. */
export const recordNetwork = async (page) => {
  const texts = [];
  const record = (...values) => texts.push(...values.map(String));
  page.on('console', (message) => record(message.text()));
  page.on('pageerror', ({ stack }) => record(stack));
  page.on('response', async (response) => {
    record(response.url(), JSON.stringify(await response.headersArray()));
    // A stream never ends, so the page records it, and the body of a page that is reloaded can be gone.
    if (new URL(response.url()).pathname !== '/feed') record(await response.text().catch(() => ''));
  });
  await page.exposeFunction('record', record);
  await page.addInitScript(() => {
    const { fetch } = window;
    window.fetch = async (...args) => {
      const response = await fetch(...args);
      const texts = response.clone().body.pipeThrough(new TextDecoderStream());
      texts.pipeTo(new WritableStream({ write: (text) => window.record(text) })).catch(() => undefined);
      return response;
    };
  });
  return () => texts.join('\n');
};

/** Another client of the relay, which gets the same as a page. Reads until the test ends or `stop()`. */
export const observe = async (t, url) => {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const response = await fetch(url, { signal: stop.signal });
  const messages = [];
  let [bytes, hasEnded] = [0, false];
  let onChange = () => undefined;
  const counted = new TransformStream({
    transform: (chunk, controller) => {
      bytes += chunk.length;
      controller.enqueue(chunk);
    },
  });
  const texts = response.body.pipeThrough(counted).pipeThrough(new TextDecoderStream());
  const read = async () => {
    for await (const { event, id, data } of texts.pipeThrough(new EventSourceParserStream())) {
      messages.push({ id, events: event === undefined ? data.split('\n').map((line) => JSON.parse(line)) : [] });
      onChange();
    }
  };
  const end = () => {
    hasEnded = true;
    onChange();
  };
  void read().then(end, end);
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
