// The market view of the example app. Compares its candles with a separate count of the frames, and its bytes with the feed's.
import { after, afterEach, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { startApp } from './example-app/app.mjs';
import { observe } from './example-app/network.mjs';
import {
  built,
  expectAccessible,
  expectText,
  expectToFit,
  openPage,
  phone as onPhone,
  screenshot,
  seconds,
} from './example-app/page.mjs';

const historyOf = async ({ url }) => (await fetch(`${url}/markets/history`)).json();
/** Opens the page at the markets and waits for the first one. */
const openMarkets = async (t, { url }, options) => {
  const view = await openPage(t, `${url}/#markets`, options);
  await view.page.locator('app-candle-chart canvas').waitFor();
  return view;
};
/** Reads the rows of the table: the start of each candle and the cells. */
const tableOf = async ({ page }) => {
  const details = page.locator('app-candle-table details');
  if ((await details.getAttribute('open')) === null) await details.locator('summary').click();
  await page.locator('app-candle-table tbody tr').first().waitFor();
  return page
    .locator('app-candle-table tbody tr')
    .evaluateAll((rows) =>
      rows.map((row) => ({ start: Number(row.dataset.start), cells: [...row.cells].map((cell) => cell.innerText) })),
    );
};

/** Returns the frames in messages of the feed, with their parsed payloads. */
const framesOf = (messages) =>
  messages.flatMap(({ events }) =>
    events
      .filter(({ type }) => type === 'frame')
      .map(({ receivedAt, data }) => ({ receivedAt, payload: JSON.parse(data) })),
  );

/** Returns the values in messages of the markets. */
const valuesOf = (messages) =>
  messages.flatMap(({ events }) => events.filter(({ type }) => type === 'value').map(({ value }) => value));

/** Computes the candles of a period, market by market. Adds up sizes in thousandths, so that nothing gets rounded. */
const countCandles = (frames, start, end) => {
  const trades = frames
    .filter(({ receivedAt }) => receivedAt >= start && receivedAt < end)
    .flatMap(({ payload }) => payload.trades);
  const candles = {};
  for (const symbol of new Set(trades.map((trade) => trade.symbol))) {
    const those = trades.filter((trade) => trade.symbol === symbol);
    const prices = those.map(({ price }) => price);
    const thousandths = those.reduce((sum, { size }) => sum + Math.round(size * 1_000), 0);
    const [high, low] = [Math.max(...prices), Math.min(...prices)];
    candles[symbol] = [prices[0], high, low, prices.at(-1), thousandths / 1_000, those.length];
  }
  return candles;
};

describe('on the local service of the demo', () => {
  let app;
  let view;
  before(async () => {
    // Outages last until the test has noticed them.
    app = await startApp(built, { args: ['--rate', '300', '--outage', '600'] });
    view = await openMarkets(undefined, app);
  });
  after(async () => {
    await view?.close();
    await app?.stop();
  });
  afterEach(async () => {
    // A failed test mustn't affect the next one.
    for (const path of ['demo/restore', 'feed/restart']) await fetch(`${app.url}/${path}`, { method: 'POST' });
  });
  const live = (which = view) =>
    expectText(which.page.locator('app-market-status'), new RegExp(`^Live Connected on this page for ${seconds}\\.`));

  test('the candles match the frames exactly: in the history and in the stream', async (t) => {
    const feed = await observe(t, `${app.url}/feed`);
    const markets = await observe(t, `${app.url}/markets`);
    const hasCandles = (messages, least) => valuesOf(messages).filter(({ kind }) => kind === 'candles').length >= least;
    await markets.until((messages) => hasCandles(messages, 6));
    const windows = valuesOf(markets.messages()).filter(({ kind }) => kind === 'candles');
    const { windows: stored } = await historyOf(app);
    // The two streams are independent, so the last frames of these windows may arrive later.
    await feed.until((messages) =>
      framesOf(messages.slice(-1)).some(({ receivedAt }) => receivedAt >= windows.at(-1).end),
    );
    const frames = framesOf(feed.messages());
    feed.stop();
    markets.stop();

    const batches = frames.map(({ payload }) => payload.batch);
    assert.ok(
      batches.every((batch, index) => index === 0 || batch === batches[index - 1] + 1),
      'no batch of the service is missing',
    );
    const whole = windows.filter(({ start }) => start > frames[0].receivedAt);
    // A busy machine can have a second without trades.
    const filled = whole.filter(({ candles }) => Object.keys(candles).length >= 5);
    assert.ok(filled.length >= 3, `${filled.length} windows with trades of most markets`);
    for (const { start, end, complete, candles } of whole) {
      const expected = countCandles(frames, start, end);
      assert.deepEqual({ complete, candles }, { complete: true, candles: expected });
      assert.deepEqual(stored.find((window) => window.start === start)?.candles, expected);
    }
  });

  test('the markets need a small part of the bytes of the feed', async (t) => {
    const markets = await observe(t, `${app.url}/markets`);
    const candlesOf = (messages) => valuesOf(messages).filter(({ kind, complete }) => kind === 'candles' && complete);
    await markets.until((messages) => candlesOf(messages).length >= 1);
    const before = markets.bytes();
    await markets.until((messages) => candlesOf(messages).length >= 6);
    const ofMarkets = markets.bytes() - before;
    markets.stop();

    // A sample, because a busy machine sends fewer frames, but no fewer prices and candles.
    const feed = await observe(t, `${app.url}/feed`);
    await feed.until((messages) => framesOf(messages).length >= 500);
    feed.stop();
    const ofFeed = (5 * 300 * feed.bytes()) / framesOf(feed.messages()).length;
    t.diagnostic(`/feed ${Math.round(ofFeed / 5_000)} kB/s, /markets ${(ofMarkets / 5_000).toFixed(1)} kB/s`);
    // The markets send the same at any rate.
    assert.ok(ofFeed / ofMarkets > 18, `1 to ${ofFeed / ofMarkets}`);
  });

  test('has no accessibility violation, light and dark', async (t) => {
    const other = await openMarkets(t, app, { reducedMotion: 'reduce' });
    await live(other);
    await tableOf(other);
    await expectAccessible(other, 'markets');
  });

  test('fits on a phone, and does not open the feed', async (t) => {
    const paths = [];
    const before = (page) => page.on('request', (request) => paths.push(new URL(request.url()).pathname));
    const phone = await openMarkets(t, app, { ...onPhone, before });
    await live(phone);
    await expectToFit(phone);
    await tableOf(phone);
    await expectToFit(phone);
    await screenshot(phone, 'markets-phone');
    assert.deepEqual([paths.includes('/markets'), paths.includes('/feed')], [true, false]);
  });
});
