// The example app in Chromium, started like `npm start`: what the page shows and says after each event.
import { after, afterEach, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { filter, interval, map, merge, Subject } from 'rxjs';
import { freePort } from '../peers/program.mjs';
import { restore, startApp, startTestService } from './example-app/app.mjs';
import { observe, recordNetwork } from './example-app/network.mjs';
import {
  built,
  eventually,
  expectAccessible,
  expectFocus,
  expectText,
  expectToFit,
  openPage,
  openTab,
  phone,
  screenshot,
  seconds,
  secondsFrom,
} from './example-app/page.mjs';

describe('on the local service of the demo', () => {
  let app;
  let view;
  before(async () => {
    // Outages last until the test has noticed them.
    app = await startApp(built, { args: ['--rate', '300', '--outage', '600'] });
    view = await openPage(undefined, app.url);
  });
  after(async () => {
    await view?.close();
    await app?.stop();
  });
  afterEach(async () => {
    // A failed test mustn't affect the next one.
    await view.page.setViewportSize({ width: 1440, height: 1000 });
    await restoreService();
    await fetch(`${app.url}/feed/restart`, { method: 'POST' });
  });
  const restoreService = () => fetch(`${app.url}/demo/restore`, { method: 'POST' });
  /** Causes an event at the local service, like a viewer. */
  const cause = async (title) => {
    const panel = view.page.locator('app-try-an-outage details');
    if ((await panel.getAttribute('open')) === null) await panel.locator('summary').click();
    await view.button(title).click();
  };
  /** Returns the number that the library gave to the last connection. */
  const connection = async () => {
    const { events } = await (await fetch(`${app.url}/history`)).json();
    return events.findLast(({ type }) => type === 'opened').connection;
  };
  /** Waits until the connection is stable, so that the library reconnects without delay. */
  const stable = () => view.state(new RegExp(`^Live Connected on this page for ${secondsFrom(5)}`));

  test('shows the status live, and new frames', async () => {
    await view.state(
      new RegExp(`^Live Connected on this page for ${seconds}\\. No outage since \\d\\d:\\d\\d:\\d\\d\\.$`),
    );
    await expectText(
      view.rows.first(),
      /^\d\d:\d\d:\d\d\.\d{3} 1\.\d kB batch \d+ transaction …\w{4,8} symbol \w+-USD side /,
    );
    await expectText(view.page.locator('[data-figure=frames] .figure'), /^[23]\d\d$/);
    await expectText(view.page.locator('[data-figure=bytes] .figure'), /^\d{3}$/);
    await expectText(view.page.locator('[data-figure=latency] .figure').first(), /^\d+$/);
    await view.page.waitForFunction(() => /^● Live [23]\d\d\/s · Trade feed$/.test(document.title));
    await screenshot(view, 'live');
  });

  // Only the log shows a short reconnect.
  const recovered = [
    ['Drop connection', /The connection dropped without a close frame\. 1006 connection lost Lasted/],
    ['Let access expire', /This connection's access expired\. 4003 access expired Lasted/],
    ['Flood', /The relay didn't read the stream as fast as it arrived\. 1013 client too slow Lasted/],
  ];
  for (const [title, words] of recovered) {
    test(`reconnects automatically: ${title}`, async () => {
      await stable();
      const before = await connection();
      await cause(title);
      await view.happened(words);
      await view.happened(/A new connection is open\. Frames of that time are lost\./);
      assert.equal(await connection(), before + 1);
      await view.state(/Last outage at \d\d:\d\d:\d\d, for [\d.]+ m?s: Th(?:e|is) /);
    });
  }

  test('a shutdown: shows the reason, and the remaining wait', async () => {
    await stable();
    const before = await connection();
    await cause('Shut down');
    await view.happened(/The service shut down\. 1001 server shutdown Ongoing for/);
    await view.state(
      /^Reconnecting (The service shut down\. 1001 server shutdown|The ticket request got no answer\.) (Next attempt in \d+ seconds? \(attempt \d+\)|Attempt \d+ is running)\. Without a connection for \d+ s\. .+/,
    );
    await expectText(view.page.locator('.cdk-live-announcer-element'), /^Reconnecting\. /);
    await view.page.waitForFunction(() => /^◌ Reconnecting: The .* · Trade feed$/.test(document.title));
    const [status, logged] = await view.page.evaluate(() =>
      [
        [document.querySelector('app-status-panel .next'), /Without a connection for (\d+) s/],
        [document.querySelector('app-event-log li .lasted'), /Ongoing for (\d+) s/],
      ].map(([element, pattern]) => Number(pattern.exec(element.innerText)?.[1])),
    );
    assert.equal(logged, status, 'the log and the status show the same duration');
    await screenshot(view, 'outage');
    await restoreService();
    await view.happened(/Lasted .* A new connection is open/);
    assert.equal(await connection(), before + 1);
    await screenshot(view, 'gap');
  });

  const stops = [
    {
      title: 'Connect elsewhere',
      words:
        /^Stopped Another client connected with this account, .* 4001 connection replaced The relay does not reconnect automatically\. Stopped at .* Find the other client, .* Connect again This page checks again (in \d+ s|now)\.$/,
    },
    {
      title: 'Write to the service',
      words:
        /^Stopped The service says it was sent a message, but the relay never sends one\. 1008 policy violation The relay does not reconnect automatically\. .* Look for a proxy .* Connect again This page checks again (in \d+ s|now)\.$/,
    },
    {
      title: 'Revoke access',
      words:
        /^Stopped Access was revoked\. The account is inactive or isn't entitled to the stream\. HTTP 403 The relay does not reconnect automatically\. .* Restore access, .* Connect again This page checks again (in \d+ s|now)\.$/,
      repair: 'Restore access',
    },
  ];
  for (const { title, words, repair } of stops) {
    test(`stops with an advice, and connects again after a click: ${title}`, async () => {
      await view.state(/^Live/);
      await cause(title);
      await view.state(words);
      await view.happened(/Stopped\. /);
      // The status says what the relay does, and the text next to the button what this page does.
      await expectText(view.page.locator('.state .next'), /^The relay does not reconnect automatically\. [^.]+\.$/);
      await expectText(view.page.locator('.state .again'), /^Connect again This page checks again (in \d+ s|now)\.$/);
      await expectText(view.page.locator('.cdk-live-announcer-element'), /^The feed has stopped\. /);
      await screenshot(view, `stopped-${title.toLowerCase().replaceAll(' ', '-')}`);
      if (repair) await cause(repair);
      await view.button('Connect again').click();
      await view.state(/^Live Connected /);
      // The button has disappeared.
      await expectFocus(view, 'status-title');
      assert.equal(await connection(), 1);
      // The library's numbers start over after a stop, so the page shows none.
      assert.doesNotMatch(await view.page.locator('body').innerText(), /connection #?\d/i);
      const before = await view.total('Frames');
      await view.page.waitForFunction(
        (before) => Number(document.querySelector('app-totals dd').innerText.replaceAll(',', '')) > before,
        before,
      );
    });
  }
});

/** Waits until the keyboard has selected the second or the last row. Returns the id of the row. */
const activeAt = async (page, expected) => {
  const found = await page.waitForFunction((expected) => {
    const list = document.querySelector('[role=listbox]');
    const row = document.getElementById(list.getAttribute('aria-activedescendant') ?? '');
    const position = row && { 2: 'second', [row.ariaSetSize]: 'last' }[row.ariaPosInSet];
    return position === expected ? row.id : undefined;
  }, expected);
  return found.jsonValue();
};

describe('with the service of the test', () => {
  let local;
  let app;
  before(async () => {
    // Numbers the payloads, so that the test detects missing and duplicate frames.
    const source = interval(5).pipe(
      map((number) => JSON.stringify({ number, market: number % 10 === 0 ? 'RARE' : 'ETH-USD' })),
    );
    local = await startTestService(built, { source });
    // The built server also runs on the oldest supported Node.
    // Starts it again on the same port.
    const args = ['--port', String(await freePort())];
    app = await startApp({ ...built, node: process.execPath }, { variables: local.variables, args });
  });
  after(async () => {
    await app?.stop();
    await local?.stop();
  });
  afterEach(() => restore(local, app));
  const numbersOf = (messages) =>
    messages.flatMap(({ events }) =>
      events.filter(({ type }) => type === 'frame').map(({ data }) => JSON.parse(data).number),
    );

  test('two tabs share one connection to the service', async (t) => {
    const first = await openPage(t, app.url);
    await first.live();
    const second = await openTab(first, app.url);
    await second.live();
    await second.rows.first().waitFor();
    await first.rows.first().waitFor();
    assert.equal(local.handshakes(), 1);
    assert.equal(
      await first.page.locator('app-try-an-outage details').count(),
      0,
      'there are no demo events with a real service',
    );
  });

  test('a reload resumes by the event id: without missing frames, duplicates and gaps', async (t) => {
    let network;
    let resumedAt;
    const observer = await observe(t, `${app.url}/feed`);
    const view = await openPage(t, app.url, {
      before: async (page) => {
        network = await recordNetwork(page);
        // The event id that the page stored before the reload.
        await page.addInitScript(() => {
          window.storedEventId = Object.values({ ...sessionStorage }).find((value) => /^[\w-]+\.\d+\./.test(value));
        });
      },
    });
    await view.live();
    await view.rows.nth(10).waitFor();
    // Delays the request until more frames have arrived.
    await view.page.route('**/feed', async (route) => {
      const from = Date.now();
      const isLater = ({ type, receivedAt }) => type === 'frame' && receivedAt > from;
      await observer.until((messages) => messages.flatMap(({ events }) => events).filter(isLater).length > 40);
      resumedAt = Date.now();
      await route.continue();
    });
    await view.page.reload();
    await view.live();
    await view.rows.nth(10).waitFor();
    await expectText(view.log.last(), /Connected (Nothing was missed|A new connection is open)\./);

    const storedId = await view.page.evaluate(() => window.storedEventId);
    const [first, second] = network.feeds();
    assert.equal(first.lastEventId, undefined);
    assert.equal(second.lastEventId, storedId, 'the request contains the stored event id');
    const until = observer.messages().findIndex(({ id }) => id === storedId);
    assert.ok(until >= 0, 'the other client has received this message');
    const before = numbersOf(observer.messages().slice(0, until + 1));
    const after = numbersOf(second.messages);
    assert.equal(after[0], before.at(-1) + 1, 'the first frame follows the last one before the reload');
    const expected = after.map((_, index) => after[0] + index);
    assert.deepEqual(after, expected, 'no frame is missing or duplicate');
    const events = second.messages.flatMap((message) => message.events);
    const missed = events.filter(({ type, receivedAt }) => type === 'frame' && receivedAt < resumedAt);
    assert.ok(missed.length >= 40, `${missed.length} frames arrived during the reload`);
    assert.ok(events.every(({ type }) => type !== 'gap'));
    assert.equal(await view.total('Gaps'), 0);
  });

  test('the browser receives no secret', async (t) => {
    let network;
    const view = await openPage(t, app.url, { before: async (page) => (network = await recordNetwork(page)) });
    await view.state(new RegExp(`^Live Connected on this page for ${secondsFrom(5)}`));
    local.account.expireAccess();
    await view.happened(/This connection's access expired\..* is open/);
    local.account.revokeAccess();
    await view.state(/^Stopped/);
    local.account.restoreAccess();
    await view.button('Connect again').click();
    await view.live();
    await view.page.reload();
    await view.live();
    await view.rows.first().waitFor();

    const received = (await network.everything()).join('\n');
    for (const part of ['"type":"frame"', '"access-expired"', '<app-root>', 'text/event-stream', '--accent']) {
      assert.ok(received.includes(part), `the browser received ${part}`);
    }
    const secrets = local.secrets();
    assert.ok(secrets.length >= 4, 'there are at least a key and three tickets');
    const printed = `${received}\n${app.output()}\n${await view.page.content()}`;
    const forms = (secret) => [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')];
    assert.deepEqual(secrets.filter((secret) => forms(secret).some((form) => printed.includes(form))).length, 0);
  });

  test('the keyboard is enough for pause, filter and payload', async (t) => {
    const view = await openPage(t, app.url);
    const { page } = view;
    await view.live();
    await view.rows.nth(10).waitFor();

    await page.keyboard.press('p');
    await expectText(page.locator('.paused'), /^Paused at \d\d:\d\d:\d\d\. [1-9][\d,]* newer frames?\.$/);
    const firstRow = await view.rows.first().innerText();
    const count = (await expectText(page.locator('.paused'), /([\d,]+) newer/))[1];
    await page.waitForFunction(
      (before) => !document.querySelector('.paused').innerText.includes(` ${before} newer`),
      count,
    );
    assert.equal(await view.rows.first().innerText(), firstRow, 'the list does not change');
    const announced = page.locator('app-frames-panel [role=status]');
    await expectText(announced, /^The list is paused\.$/);
    await page.keyboard.press('p');
    await page.locator('.paused').waitFor({ state: 'detached' });

    await page.keyboard.press('/');
    await page.keyboard.type('rare');
    await expectText(page.locator('.scope'), /^\d+ match(es)?$/);
    await expectText(announced, /^\d+ match(es)?$/);
    await expectText(view.rows.nth(2), /RARE/);
    await eventually(async () => {
      for (const text of await view.rows.allInnerTexts()) assert.match(text, /RARE/);
    });
    await screenshot(view, 'filter');

    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    const list = page.getByRole('listbox', { name: 'Frames' });
    await page.waitForFunction((element) => element === document.activeElement, await list.elementHandle());
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    const second = await activeAt(page, 'second');
    await page.keyboard.press('End');
    await activeAt(page, 'last');
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowDown');
    assert.equal(await activeAt(page, 'second'), second);
    await page.keyboard.press('Enter');
    await expectText(page.locator('app-frame-inspector pre'), /"market": "RARE"/);
    await screenshot(view, 'payload');
    await page.keyboard.press('Escape');
    await page.locator('app-frame-inspector').waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
    await page.keyboard.press('Escape');

    const slider = page.getByRole('slider', { name: /^Frames per second/ });
    await slider.focus();
    await page.keyboard.press('ArrowLeft');
    await page.waitForFunction(
      (element) => /^\d\d:\d\d:\d\d: frames per second [\d.]+$/.test(element.ariaValueText),
      await slider.elementHandle(),
    );
    await page.keyboard.press('t');
    await page.locator('html[data-theme=light]').waitFor();
  });

  test('has no accessibility violation, light and dark: live, stopped, and with the keys', async (t) => {
    const view = await openPage(t, app.url, { reducedMotion: 'reduce' });
    const { page } = view;
    await view.live();
    await view.rows.nth(5).click();
    await page.locator('app-frame-inspector pre').waitFor();
    await expectAccessible(view, 'live');
    local.account.revokeAccess();
    await view.state(/^Stopped/);
    await expectAccessible(view, 'stopped');
    local.account.restoreAccess();
    await view.button('Connect again').click();
    await view.live();
    await page.keyboard.press('?');
    await expectAccessible(view);
  });

  test('fits on a phone', async (t) => {
    const view = await openPage(t, app.url, phone);
    const { page } = view;
    await view.live();
    await view.rows.nth(5).waitFor();
    await expectToFit(view);
    await screenshot(view, 'phone');
    await view.rows.nth(2).tap();
    await page.locator('app-frame-inspector pre').waitFor();
    await expectToFit(view);
    await screenshot(view, 'phone-payload', { fullPage: false });
    await view.button('Close').first().tap();
    local.account.revokeAccess();
    await view.state(/^Stopped/);
    await expectToFit(view);
    await screenshot(view, 'phone-stopped');
  });

  test('Ctrl-C stops the server cleanly; the page reports it, and reconnects after the restart', async (t) => {
    const view = await openPage(t, app.url);
    await view.live();
    assert.equal(await app.stop(), 0);
    await view.state(
      /^Reconnecting The relay didn't answer\. .*Attempt|^Reconnecting The relay didn't answer\. Next attempt in/,
    );
    await view.page.locator('.hops li').nth(1).locator('.link.trying').waitFor();
    // The restarted server has no earlier frames.
    app = await startApp(
      { ...built, node: process.execPath },
      { variables: local.variables, args: ['--port', new URL(app.url).port] },
    );
    await view.state(new RegExp(`^Live Connected on this page for ${seconds}\\. Last outage at .*: The `));
    await eventually(async () => {
      const log = (await view.log.allInnerTexts()).join('\n');
      assert.match(log, /Lasted /);
      assert.doesNotMatch(log, /Ongoing for/);
    });
  });
});

describe('figures, log and history', () => {
  let local;
  let app;
  let flow;
  before(async () => {
    flow = { isOn: true, number: 0, extra$: new Subject() };
    const payload = () => {
      flow.number += 1;
      const list = Array.from({ length: 120 }, (_, index) => (index % 40 === 39 ? 'needle' : `item ${index}`));
      return JSON.stringify({ number: flow.number, list: flow.number % 10 === 0 ? list : [], price: 'ETH-USD' });
    };
    const source = merge(
      interval(4).pipe(
        filter(() => flow.isOn),
        map(payload),
      ),
      flow.extra$,
    );
    local = await startTestService(built, { source });
    app = await startApp(built, { variables: local.variables });
  });
  after(async () => {
    await app?.stop();
    await local?.stop();
  });
  afterEach(() => {
    flow.isOn = true;
    return restore(local, app);
  });
  /** Returns the duration in a text, in seconds. */
  const secondsIn = (text) => {
    const [, minutes = 0, whole] = /(?:(\d+) min )?([\d.]+) s/.exec(text) ?? assert.fail(`no duration: ${text}`);
    return Number(minutes) * 60 + Number(whole);
  };
  /** Loads the history of the server. */
  const history = async () => (await fetch(`${app.url}/history`)).json();
  /** Changes the history that the page receives. */
  const withHistory = (change) => (page) =>
    page.route('**/history', async (route) => {
      const answer = await history();
      await route.fulfill({ json: { ...answer, ...change(answer) } });
    });
  const total = (view, name) => expectText(view.totalOf(name), /(.*)/).then(([text]) => text);

  test('a stop: when one page connects again, the other one is live too', async (t) => {
    const restarting = await openPage(t, app.url);
    const other = await openPage(t, app.url);
    for (const view of [restarting, other]) await view.live();
    local.account.revokeAccess();
    for (const view of [restarting, other])
      await view.state(
        /^Stopped Access was revoked\..* HTTP 403 .*Connect again This page checks again (in \d+ s|now)\.$/,
      );
    await other.happened(/Stopped\./);
    const entries = await other.log.count();
    // The page checks several more times, which adds no entry.
    await other.page.waitForResponse('**/feed');
    await other.page.waitForResponse('**/feed');
    await other.state(/^Stopped/);
    assert.equal(await other.log.count(), entries, 'the log contains the stop once');
    const later = await openPage(t, app.url);
    await later.state(/^Stopped Access was revoked\./);
    local.account.restoreAccess();
    await restarting.button('Connect again').click();
    for (const view of [restarting, other, later]) await view.live();
    for (const view of [restarting, other, later]) {
      await view.happened(/^.* Stopped\. .* Lasted .*A new connection is open\./);
      assert.match(await total(view, 'Reconnect attempts'), /^\d+ (?!.*not entitled)/);
    }
  });

  test('an outage that ends in a stop: status, log and totals show the same duration', async (t) => {
    const view = await openPage(t, app.url);
    await view.live();
    // Doesn't ask the page, which shows 0 until the server's history has arrived.
    const before = (await history()).totals.lostMs / 1_000;
    local.service.failCredentials(true);
    local.account.expireAccess();
    await view.state(new RegExp(`^Reconnecting .* Without a connection for ${secondsFrom(3)}\\.`));
    local.account.revokeAccess();
    local.service.failCredentials(false);
    await view.state(/^Stopped /);
    await view.page.waitForFunction(
      (since) => performance.now() > since,
      await view.page.evaluate(() => performance.now() + 2_000),
    );
    local.account.restoreAccess();
    await view.button('Connect again').click();
    const [shown] = await view.state(/Last outage at \d\d:\d\d:\d\d, for [\d.]+ (min \d+ )?s: /);
    assert.ok(secondsIn(shown) >= 5, shown);
    const [logged] = await view.happened(/Lasted ((?:\d+ min )?[\d.]+) s\./);
    assert.equal(secondsIn(logged.slice(logged.indexOf('Lasted'))), secondsIn(shown));
    const lost = await eventually(async () => {
      const seconds = secondsIn(await total(view, 'Lost time')) - before;
      assert.ok(Math.abs(seconds - secondsIn(shown)) < 0.11, `${seconds} s in the totals, ${shown}`);
      return seconds;
    });

    // A page loaded later shows the same. The server noticed the opening earlier: some ms, or more on a busy machine.
    const isClose = (one, other) => Math.abs(one - other) < 1.5;
    await view.page.reload();
    await eventually(async () => {
      const [later] = await view.state(/^Live .* Last outage at \d\d:\d\d:\d\d, for [\d.]+ (min \d+ )?s: /);
      assert.ok(isClose(secondsIn(later.slice(later.indexOf('Last'))), secondsIn(shown)), `${shown}, then ${later}`);
      const lostLater = secondsIn(await total(view, 'Lost time')) - before;
      assert.ok(isClose(lostLater, lost), `${lost} s, then ${lostLater} s`);
    });
  });

  test('a reload starts with the history of the server, and counts nothing twice', async (t) => {
    const view = await openPage(t, app.url);
    await view.live();
    local.account.expireAccess();
    await view.happened(/^\S+ This connection's access expired\..* is open\. Frames of that time are/);
    const since = await view.page.locator('#totals-title').innerText();
    const entries = await view.log.allInnerTexts();
    const gaps = await total(view, 'Gaps');
    for (let reload = 0; reload < 3; reload += 1) {
      const before = await view.total('Frames');
      await view.page.reload();
      await view.live();
      await expectText(view.page.locator('#totals-title'), new RegExp(`^${since}$`));
      await eventually(async () => {
        assert.ok((await view.total('Frames')) >= before);
        assert.deepEqual(await view.log.allInnerTexts(), entries);
        assert.equal(await total(view, 'Gaps'), gaps);
      });
    }
    // The charts don't count a second twice either.
    const slider = view.page.getByRole('slider', { name: /^Frames per second/ });
    await view.page.waitForFunction((element) => Number(element.ariaValueMax) > 5, await slider.elementHandle());
    await slider.focus();
    const rates = [];
    for (let point = 0; point < 6; point += 1) {
      await view.page.keyboard.press('ArrowLeft');
      // A point in an outage has no rate.
      const rate = /frames per second ([\d.]+)$/.exec(await slider.getAttribute('aria-valuetext'))?.[1];
      if (rate !== undefined) rates.push(Number(rate));
    }
    // About 250, or more in a second in which a busy machine caught up on the one before.
    const most = Math.max(...(await history()).seconds.map(([, frames]) => frames));
    assert.ok(
      rates.length >= 3 && Math.max(...rates) < 1.6 * most,
      `expected at most ${most} frames per second, twice as many if counted twice, got ${rates}`,
    );

    const other = await openPage(t, app.url);
    await other.live();
    await other.rows.nth(5).waitFor();
    flow.isOn = false;
    // Frames that were on their way when the flow ended still arrive: first at the server, then at the pages.
    await eventually(async () => {
      const { totals } = await history();
      const ofPages = await Promise.all([view, other].map((page) => page.total('Frames')));
      assert.deepEqual(ofPages, [totals.frames, totals.frames], 'the server and both pages count the same frames');
    });
  });

  test('a history that arrives late is not taken for one of another clock: the page counts every frame', async (t) => {
    const late = async (page) =>
      page.route('**/history', async (route) => {
        const response = await route.fetch();
        await delay(2_000);
        await route.fulfill({ response });
      });
    const view = await openPage(t, app.url, { before: late });
    await view.live();
    await view.rows.nth(5).waitFor();
    flow.isOn = false;
    await eventually(async () => assert.equal(await view.total('Frames'), (await history()).totals.frames));
  });

  test('the history is protected by the guard, bounded, and contains public failures only', async () => {
    const refused = await fetch(`${app.url}/history`, { headers: { 'Sec-Fetch-Site': 'cross-site' } });
    assert.equal(refused.status, 403);
    const { until, since, seconds, events } = await history();
    assert.ok(since < until && until <= Date.now());
    assert.ok(seconds.length > 0 && seconds.length <= 901);
    assert.ok(events.length > 0 && events.length <= 1_000);
    const failures = events.flatMap(({ failure }) => failure ?? []);
    assert.ok(failures.length > 0);
    const allowed = ['code', 'stage', 'verdict', 'status', 'closeCode', 'retryAfterMs', 'meaning', 'message', 'advice'];
    const counted = ['endedAt', 'uptimeMs', 'framesReceived', 'name', 'previous'];
    for (const failure of failures) {
      assert.deepEqual(
        Object.keys(failure).filter((key) => ![...allowed, ...counted].includes(key)),
        [],
      );
      const reasons = /\d access expired|connection replaced|client too slow|server shutdown/;
      assert.doesNotMatch(failure.message, reasons, 'the close reason of the service is not forwarded');
    }
  });

  test('the log says which time it covers, and the status claims no more', async (t) => {
    const view = await openPage(t, app.url, {
      before: withHistory(({ until }) => ({ since: until - 3_600_000, eventsSince: until - 900_000, events: [] })),
    });
    // The history arrives after the stream has started.
    await view.page.waitForFunction(() => {
      const times = ['totals-title', 'log-title'].map((id) => document.getElementById(id).innerText.slice(-8));
      return times[0] !== times[1];
    });
    const [, covered] = await expectText(view.page.locator('#log-title'), /^What happened since (.*\d\d:\d\d:\d\d)$/);
    await view.state(new RegExp(`No outage since ${covered}\\.$`));
  });

  test('a field that all payloads share is not in the rows, unless a payload lacks it', async (t) => {
    const view = await openPage(t, app.url);
    const payload = (words) => view.page.locator('.row .payload', { hasText: words }).first();
    await view.live();
    await expectText(payload('number'), /^number \d+$/);
    const alerts = setInterval(() => flow.extra$.next('{"alert":"needle"}'), 10);
    try {
      await expectText(payload('number'), /^number \d+ .*price ETH-USD$/);
      await expectText(payload('alert'), /^alert needle$/);
    } finally {
      clearInterval(alerts);
    }
  });

  test('a filter marks its matches in the rows and in the payload, and keys move between them', async (t) => {
    const view = await openPage(t, app.url);
    const { page } = view;
    await view.live();
    await page.fill('#filter', 'needle');
    await expectText(view.rows.nth(2).locator('mark').first(), /^needle$/);
    await view.rows.nth(1).click();
    const inspector = page.locator('app-frame-inspector');
    const current = inspector.locator('pre mark.current');
    const isVisible = async () =>
      page.waitForFunction(() => {
        const mark = document.querySelector('app-frame-inspector pre mark.current')?.getBoundingClientRect();
        const pre = document.querySelector('app-frame-inspector pre').getBoundingClientRect();
        return mark !== undefined && mark.top >= pre.top && mark.bottom <= pre.bottom;
      });
    await eventually(async () => assert.equal(await inspector.locator('pre mark').count(), 3));
    for (const [place, key] of [
      [1, undefined],
      [2, 'n'],
      [3, 'n'],
      [1, 'n'],
      [3, 'N'],
    ]) {
      if (key) await page.keyboard.press(key);
      await expectText(inspector.locator('.matches'), new RegExp(`^${place} of 3`));
      await isVisible();
      await expectText(current, /^needle$/);
    }
    await inspector.getByRole('button', { name: 'Next match' }).click();
    await expectText(inspector.locator('.matches'), /^1 of 3/);
    await screenshot(view, 'matches');
    // The filter matches the payload, without the spaces that the page adds.
    await page.fill('#filter', '"price":"eth');
    await expectText(inspector.locator('pre mark.current').first(), /^"price":/);
  });

  test('the title of the page and an optional sound report a stop', async (t) => {
    const view = await openPage(t, app.url, {
      before: (page) =>
        page.addInitScript(() => {
          window.beeps = 0;
          const { start } = OscillatorNode.prototype;
          OscillatorNode.prototype.start = function (...args) {
            window.beeps += 1;
            return start.apply(this, args);
          };
        }),
    });
    const { page } = view;
    const title = (pattern) =>
      page.waitForFunction((source) => new RegExp(source).test(document.title), pattern.source);
    const beeps = () => page.evaluate(() => window.beeps);
    const stop = async () => {
      local.account.revokeAccess();
      await view.state(/^Stopped/);
      await title(/^■ Stopped: Access was revoked · Trade feed$/);
    };
    const restart = async () => {
      local.account.restoreAccess();
      await view.button('Connect again').click();
      await title(/^● Live [\d,]+\/s · Trade feed$/);
    };
    await title(/^● Live [\d,]+\/s · Trade feed$/);
    await stop();
    assert.equal(await beeps(), 0, 'the sound is off at first');
    await restart();
    await view.button('Sound: off').click();
    await view.button('Sound: on').waitFor();
    await page.reload();
    await view.live();
    await view.button('Sound: on').waitFor();
    // A browser allows sound after a click.
    await page.locator('h1').click();
    await stop();
    await page.waitForFunction(() => window.beeps > 0);
    await restart();
    const before = await beeps();
    local.service.failCredentials(true);
    local.account.expireAccess();
    await title(/^◌ Reconnecting: /);
    await page.waitForFunction((before) => window.beeps > before, before);
    local.service.failCredentials(false);
    await title(/^● Live/);
    await view.button('Sound: on').click();
    const last = await beeps();
    await stop();
    assert.equal(await beeps(), last, 'the sound is off again');
    await restart();
  });
});
