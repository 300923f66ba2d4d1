// Pages of the example in Chromium. Each page has a separate browser context, like a separate user.
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { createReceivedLog } from './received-log.mjs';

const paths = [
  process.env.CHROMIUM_PATH,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Starts Chromium. */
export const startBrowser = async () => {
  const executablePath = paths.find((path) => path && existsSync(path));
  if (executablePath === undefined)
    throw new Error('Chromium is not installed. Set CHROMIUM_PATH, or on Debian run: apt-get install chromium');
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
};

/** Opens a page, and records the events that it receives from /feed. */
export const openPage = async (browser, url, name) => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const log = createReceivedLog();
  await page.exposeBinding('rxTradeFeedReceived', (_, lines) => {
    for (const [number, at] of lines) {
      if (number === 'gap') log.gap();
      else log.frame(number, at);
    }
  });
  await page.addInitScript(recordEvents);
  await page.goto(url);
  const title = page.locator('app-status-panel .state h2');
  return { name, kind: 'page', log, state: async () => (await title.innerText()).trim() };
};

/** Runs in the page: reads each response of /feed a second time. */
const recordEvents = () => {
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
      if (lines.length > 0) void globalThis.rxTradeFeedReceived(lines.flatMap((line) => numbers(line.slice(6))));
    }
  };
  globalThis.fetch = async (...args) => {
    const response = await fetch(...args);
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
    if (!isStream || !/\/feed$/.test(new URL(response.url).pathname)) return response;
    const [original, copy] = response.body.tee();
    read(copy).catch(() => undefined);
    const { status, headers } = response;
    return new Response(original, { status, headers });
  };
};
