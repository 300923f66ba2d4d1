// Pages of the example in Chromium. Each has a browser context of its own, as if each were another person's.
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { received } from './received.mjs';

const places = [
  process.env.CHROMIUM_PATH,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Starts Chromium. */
export const startBrowser = async () => {
  const executablePath = places.find((path) => path && existsSync(path));
  if (executablePath === undefined)
    throw new Error('This needs Chromium: name it in CHROMIUM_PATH. On Debian: apt-get install chromium');
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
};

/** Opens a page and reads along what it receives from /feed, as it comes over the wire. */
export const openPage = async (browser, url, name) => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const log = received();
  await page.exposeBinding('rxTradeFeedSeen', (_, lines) => {
    for (const [number, at] of lines) {
      if (number === 'gap') log.gap();
      else log.frame(number, at);
    }
  });
  await page.addInitScript(readAlong);
  await page.goto(url);
  const title = page.locator('app-status-panel .state h2');
  return { name, kind: 'page', log, state: async () => (await title.innerText()).trim() };
};

/** Runs in the page: a second reader of each answer of /feed. */
const readAlong = () => {
  const { fetch } = globalThis;
  const numbers = (line) => {
    const event = JSON.parse(line);
    if (event.type === 'gap') return [['gap', event.to]];
    return event.type === 'frame' ? [[JSON.parse(event.data).batch, Date.now()]] : [];
  };
  const read = async (body) => {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const messages = (rest + value).split('\n\n');
      rest = messages.pop();
      const events = messages.filter((message) => !/^event:/m.test(message));
      const lines = events.flatMap((message) => message.split('\n').filter((line) => line.startsWith('data: {')));
      if (lines.length > 0) void globalThis.rxTradeFeedSeen(lines.flatMap((line) => numbers(line.slice(6))));
    }
  };
  globalThis.fetch = async (...asked) => {
    const answer = await fetch(...asked);
    const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream');
    if (!isStream || !/\/feed$/.test(new URL(answer.url).pathname)) return answer;
    const [its, ours] = answer.body.tee();
    read(ours).catch(() => undefined);
    const { status, headers } = answer;
    return new Response(its, { status, headers });
  };
};
