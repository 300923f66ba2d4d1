// The market view of the example app. Compares its candles with a separate count of the frames, with and without an
// outage, and its bytes with the feed's.
import { after, afterEach, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { from, lastValueFrom, toArray } from 'rxjs';
import { startApp, startTestService } from './example-app/app.mjs';
import { observe } from './example-app/network.mjs';
import { bundled } from '../support/bundle.mjs';
import {
  built,
  eventually,
  expectAccessible,
  expectFocus,
  expectText,
  expectToFit,
  openPage,
  phone as onPhone,
  screenshot,
  seconds,
} from './example-app/page.mjs';

const importBuilt = (path) => import(pathToFileURL(join(built.folder, path)).href);
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
    candles[symbol] = [
      prices[0],
      Math.max(...prices),
      Math.min(...prices),
      prices.at(-1),
      thousandths / 1_000,
      those.length,
    ];
  }
  return candles;
};

describe('the operators, with created events', () => {
  const start = Date.UTC(2026, 10, 20, 12);
  /** As with `deliveryDelayMs: 0`, so that the connection is complete at once. */
  const opened = (at, connection) => {
    const openedAt = start + at;
    return { type: 'opened', at: openedAt, feed: 'market', connection, completeFrom: openedAt };
  };
  let frame;
  let valuesFor;
  before(async () => {
    const { Frame } = await importBuilt('node_modules/rx-trade-feed/dist/index.js');
    const { marketValues } = await importBuilt('dist/server/markets/market-values.js');
    const { TradeBatch } = await importBuilt('dist/server/markets/trade-batch.js');
    frame = (at, payload) => new Frame('market', Buffer.from(JSON.stringify(payload)), false, start + at, 1);
    valuesFor = (events) => lastValueFrom(from(events).pipe(marketValues(TradeBatch), toArray()));
  });
  const trades = (...list) => ({ trades: list.map(([symbol, price, size]) => ({ symbol, price, size })) });

  test('mark only the candles that overlap an outage as incomplete', async () => {
    const { createTradeFeedError } = await importBuilt('node_modules/rx-trade-feed/dist/index.js');
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 1006, endedAt: start + 1_400 });
    const values = await valuesFor([
      opened(0, 1),
      frame(100, trades(['A', 10, 1])),
      frame(1_100, trades(['A', 11, 1])),
      { type: 'disconnected', at: start + 1_400, failure },
      opened(3_200, 2),
      { type: 'gap', from: start + 1_400, to: start + 3_200, durationMs: 1_800, failure },
      frame(3_500, trades(['A', 12, 1])),
      frame(4_500, trades(['A', 13, 1])),
      frame(5_000, trades(['A', 14, 1])),
    ]);
    const windows = values.filter(({ kind }) => kind === 'candles');
    assert.deepEqual(
      windows.slice(0, 5).map(({ complete, candles }) => [complete, candles.A?.[3]]),
      [
        [true, 10],
        [false, 11],
        [false, undefined],
        [false, 12],
        [true, 13],
      ],
    );
    assert.deepEqual(windows[3].gaps, [{ from: start + 1_400, to: start + 3_200 }]);
  });

  test('emit the last price of each market, and drop frames that the codec refuses', async () => {
    const values = await valuesFor([
      opened(0, 1),
      frame(100, trades(['A', 10, 1], ['B', 5, 1])),
      frame(200, { flood: 'x' }),
      frame(300, trades(['A', 11, 1], ['A', 12, 1])),
      frame(400, { trades: [{ symbol: 'A', price: '13', size: 1 }] }),
    ]);
    assert.deepEqual(
      values.filter(({ kind }) => kind === 'price'),
      [
        { kind: 'price', symbol: 'A', price: 12, at: start + 300 },
        { kind: 'price', symbol: 'B', price: 5, at: start + 100 },
      ],
    );
  });
});

describe('on the server', () => {
  test('the history stores exactly the last 15 minutes', async () => {
    const { CandleHistory } = await importBuilt('dist/server/markets/candle-history.js');
    const history = new CandleHistory(900_000);
    for (let start = 0; start < 3_600_000; start += 1_000) history.add({ start, end: start + 1_000 });
    assert.equal(history.windows.length, 900);
    assert.equal(history.windows[0].start, 2_700_000);
    assert.equal(history.windows.at(-1).start, 3_599_000);
  });
});

describe('on the page', () => {
  test('of two windows of one second the complete one counts, otherwise the one with more trades', async () => {
    const file = '../../examples/nestjs-angular/page/src/app/markets/candle-store.ts';
    const { CandleStore } = await bundled(new URL(file, import.meta.url));
    const second = (trades, complete) => ({
      ...{ kind: 'candles', start: 0, end: 1_000, complete, gaps: [] },
      candles: { A: [10, 10, 10, 10, trades, trades] },
    });
    const shown = (...windows) => {
      const store = new CandleStore(1_000, 60_000);
      for (const window of windows) store.add(window);
      return store.rows('A', 5_000, 0).map(({ volume }) => volume);
    };
    const [few, many, complete] = [second(3, false), second(8, false), second(5, true)];
    assert.deepEqual([shown(few, many), shown(many, few)], [[8], [8]]);
    assert.deepEqual([shown(many, complete), shown(complete, many)], [[5], [5]]);
  });
});

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
  const cause = (name) => fetch(`${app.url}/demo/${name}`, { method: 'POST' });

  test('the candles match the frames exactly: in the history, in the stream, and in the table', async (t) => {
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

    // The table has a row with formatted figures for each candle.
    const symbol = await view.page.locator('#large-title').innerText();
    await eventually(async () => {
      const table = await tableOf(view);
      assert.equal(new Set(table.map(({ start }) => start)).size, table.length, 'no duplicate row');
      for (const { start, candles } of whole.filter((window) => symbol in window.candles)) {
        const [open, high, low, close, volume, count] = candles[symbol];
        const { cells } = table.find((row) => row.start === start);
        const figures = cells.map((cell) => Number(cell.replaceAll(',', '')));
        assert.deepEqual([...figures.slice(1, 5), figures[7]], [open, high, low, close, count]);
        assert.ok(Math.abs(figures[6] - volume) <= (volume < 10 ? 0.0005 : volume < 1_000 ? 0.05 : 0.5) + 1e-9);
        assert.equal(cells[8], 'complete');
      }
    });
  });

  test('sends the price of a market at most ten times a second', async (t) => {
    const markets = await observe(t, `${app.url}/markets`);
    const pricesOf = (messages) => valuesOf(messages).filter(({ kind }) => kind === 'price');
    await markets.until((messages) => pricesOf(messages).filter(({ symbol }) => symbol === 'ETH-USD').length >= 30);
    markets.stop();
    const times = pricesOf(markets.messages())
      .filter(({ symbol }) => symbol === 'ETH-USD')
      .map(({ at }) => at);
    // Each price is the newest of 100 ms, so a second that begins at a price may contain 11, or 12, because a timer may be a ms early.
    const most = Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length));
    assert.ok(most <= 12, `${most} in a second`);
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

  test('shows that the trades are made up, and updates the last price', async () => {
    await live();
    await expectText(view.page.locator('.made-up'), /^These trades are made up by the local service\./);
    const price = view.page.locator('.large .figure');
    const [first] = await expectText(price, /^[\d,]+\.\d{2,4}$/);
    await view.page.waitForFunction((first) => document.querySelector('.large .figure').innerText !== first, first);
    await expectText(view.page.locator('.large .change [aria-hidden]'), /^[▲▼•] \d+\.\d\d%$/);
    await view.page.waitForFunction(() => document.title === 'Live · Markets');
  });

  test('an outage has incomplete windows, and incomplete rows in the table', async () => {
    await live();
    const before = Date.now();
    await cause('outage');
    await expectText(view.page.locator('app-market-status'), /^Reconnecting .+/);
    await expectText(view.page.locator('.large .since'), /^last known price$/);
    await view.page.waitForFunction((since) => Date.now() > since + 3_000, before);
    await cause('restore');
    await live();
    const { windows, gap } = await eventually(async () => {
      const { windows } = await historyOf(app);
      const [gap] = windows.flatMap(({ gaps }) => gaps.filter(({ from }) => from >= before - 1_000)).slice(-1);
      const newest = windows.at(-1);
      assert.ok(gap && newest.complete && newest.start > gap.to + 3_000, 'the outage is over');
      return { windows, gap };
    });
    const affected = windows.filter(({ start, end }) => start <= gap.to && end >= gap.from && end > before - 1_000);
    assert.ok(affected.length >= 3, 'the outage spans several windows');
    assert.ok(
      affected.every(({ complete }) => !complete),
      'all affected windows are incomplete',
    );
    await eventually(async () => {
      const rows = (await tableOf(view)).filter(({ start }) => affected.some((window) => window.start === start));
      assert.ok(rows.length > 0, 'the outage has rows');
      for (const { cells } of rows) assert.equal(cells[8], 'incomplete: trades may be missing');
    });
    await screenshot(view, 'markets-outage', { fullPage: false });
  });

  test('a later page shows earlier and new candles, without duplicates and holes', async (t) => {
    const later = await openMarkets(t, app);
    await live(later);
    const openedAt = Date.now();
    await later.page.waitForFunction(
      (at) => Number(document.querySelector('app-candle-chart .plot').dataset.to) > at + 3_000,
      openedAt,
    );
    const rows = await tableOf(later);
    const starts = rows.map(({ start }) => start).reverse();
    assert.ok(starts[0] < openedAt - 10_000, 'the table begins before the page was opened');
    assert.ok(starts.at(-1) > openedAt, 'the table continues');
    const { windows } = await historyOf(app);
    const symbol = await later.page.locator('#large-title').innerText();
    const expected = windows
      .filter(({ start, candles }) => candles[symbol] && start >= starts[0] && start <= starts.at(-1))
      .map(({ start }) => start);
    assert.deepEqual(starts, expected);
    // The stream may have started mid-second, but the server has the whole second.
    const complete = new Map(windows.map(({ start, complete }) => [start, complete]));
    for (const { start, cells } of rows)
      assert.equal(cells[8] === 'complete', complete.get(start), `${new Date(start).toISOString()}`);
  });

  test('longer candles are merged from the short ones', async () => {
    await view.button('5 min').click();
    const symbol = await view.page.locator('#large-title').innerText();
    // The table changes after the click, and gets the newest candle later than the server.
    await eventually(async () => {
      const { windows } = await historyOf(app);
      const whole = (await tableOf(view)).filter(
        ({ start }) => start + 5_000 <= windows.at(-1).end && start >= windows[0].start,
      );
      assert.ok(whole.length >= 3);
      for (const { start, cells } of whole) {
        const parts = windows.filter((window) => window.start >= start && window.start < start + 5_000);
        const candles = parts.map(({ candles }) => candles[symbol]).filter(Boolean);
        const figures = cells.map((cell) => Number(cell.replaceAll(',', '')));
        assert.deepEqual(
          [...figures.slice(1, 5), figures[7], cells[8] === 'complete'],
          [
            candles[0][0],
            Math.max(...candles.map(([, high]) => high)),
            Math.min(...candles.map(([, , low]) => low)),
            candles.at(-1)[3],
            candles.reduce((sum, candle) => sum + candle[5], 0),
            parts.length === 5 && parts.every(({ complete }) => complete),
          ],
        );
      }
    });
    await view.button('1 min').click();
  });

  test('stops, and connects again after a click', async () => {
    await live();
    await cause('revoke');
    await expectText(view.page.locator('app-market-status'), /Access was revoked/);
    await expectText(
      view.page.locator('app-market-status .next'),
      /^The relay does not reconnect automatically\. [^.]+\.$/,
    );
    await expectText(
      view.page.locator('app-market-status .again'),
      /^Connect again This page checks again (in \d+ s|now)\.$/,
    );
    await cause('restore');
    await view.button('Connect again').click();
    await live();
  });

  test('the keyboard is enough to switch the view and to read each candle', async () => {
    const { page } = view;
    const slider = page.getByRole('slider', { name: /the last 1 min, candle by candle$/ });
    await slider.focus();
    await page.keyboard.press('ArrowLeft');
    await page.waitForFunction(
      (element) =>
        /^\d\d:\d\d:\d\d: open [\d,.]+, high [\d,.]+, low [\d,.]+, close [\d,.]+, (up|down|unchanged).*, volume [\d,.]+ in \d+ trades, /.test(
          element.ariaValueText,
        ),
      await slider.elementHandle(),
    );
    const ended = page.waitForEvent('requestfailed', (request) => new URL(request.url()).pathname === '/markets');
    await page.keyboard.press('m');
    await page.locator('app-frames-panel').waitFor();
    await ended;
    await view.state(/^Live/);
    await page.keyboard.press('p');
    await expectText(page.locator('.paused'), /^Paused/);
    await page.keyboard.press('m');
    await page.locator('app-candle-chart canvas').waitFor();
    await expectFocus(view, 'markets-title');
    // The shortcuts of the feed view have no effect here.
    await page.keyboard.press('p');
    await page.keyboard.press('/');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'markets-title');
    await page.goBack();
    await page.locator('app-frames-panel').waitFor();
    await page.getByRole('link', { name: 'Markets' }).click();
    await page.locator('app-candle-chart canvas').waitFor();
  });

  test('a page with the markets does not open the feed', async (t) => {
    const paths = [];
    const other = await openMarkets(t, app, {
      before: (page) => page.on('request', (request) => paths.push(new URL(request.url()).pathname)),
    });
    await live(other);
    assert.ok(paths.includes('/markets'));
    assert.ok(!paths.includes('/feed'), paths.join(' '));
  });

  test('has no accessibility violation, light and dark', async (t) => {
    const other = await openMarkets(t, app, { reducedMotion: 'reduce' });
    await live(other);
    await tableOf(other);
    await expectAccessible(other, 'markets');
  });

  test('fits on a phone', async (t) => {
    const phone = await openMarkets(t, app, onPhone);
    await live(phone);
    await expectToFit(phone);
    await tableOf(phone);
    await expectToFit(phone);
    await screenshot(phone, 'markets-phone');
  });
});

describe('with the service of the test', () => {
  let local;
  let app;
  before(async () => {
    local = await startTestService(built);
    app = await startApp(built, { variables: local.variables });
  });
  after(async () => {
    await app?.stop();
    await local?.stop();
  });

  test('explains that the payload is unknown, and what to add', async (t) => {
    const paths = [];
    const view = await openPage(t, `${app.url}/#markets`, {
      before: (page) => page.on('request', (request) => paths.push(new URL(request.url()).pathname)),
    });
    const { page } = view;
    await expectText(page.locator('app-unknown-payload h3'), /^This view does not know the payload of this feed\.$/);
    await expectText(
      page.locator('app-unknown-payload'),
      /server\/src\/markets\/trade-batch\.ts.*server\/src\/markets\/payload\.ts/,
    );
    assert.equal(await page.locator('.made-up, app-candle-chart').count(), 0);
    assert.ok(!paths.includes('/markets'), 'the page does not open the stream of the markets');
    assert.deepEqual((await historyOf(app)).windows, []);
    assert.equal((await fetch(`${app.url}/markets`)).status, 404);
    await expectAccessible(view);
    await page.setViewportSize({ width: 360, height: 780 });
    await expectToFit(view);
    await screenshot(view, 'markets-unknown');
  });
});
