// The example app, as `npm start` runs it, in Chromium: what it shows, and what it says when something happens.
import { after, afterEach, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium as chromiumDriver } from 'playwright-core';
import { filter, interval, map, merge, Subject } from 'rxjs';
import { bandsOf } from './example-app/canvas.mjs';
import { expectText } from './example-app/expect-text.mjs';
import { makeApp } from './example-app/made-app.mjs';
import { recordNetwork } from './example-app/network.mjs';
import { startOwnService } from './example-app/own-service.mjs';
import { observe } from './example-app/observer.mjs';
import { openPage, openTab } from './example-app/page.mjs';
import { startApp } from './example-app/running-app.mjs';
import { chromium, chromiumArgs } from './support.mjs';

let made;
let browser;
let shots;

before(
  async () => {
    made = await makeApp();
    browser = await chromiumDriver.launch({ executablePath: chromium(), args: chromiumArgs });
    shots = await mkdtemp(join(tmpdir(), 'rx-trade-feed-screenshots-'));
  },
  { timeout: 300_000 },
);
after(async () => {
  await browser?.close();
  console.log(`screenshots: ${shots}`);
});

const shot = async ({ page }, name) => {
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
};

describe('on the local service of the demo', () => {
  let app;
  let view;
  before(async () => {
    app = await startApp(made, { args: ['--rate', '300', '--outage', '3'] });
    view = await openPage(browser, app.url);
  });
  after(async () => {
    assert.deepEqual(view?.errors, []);
    await view?.close();
    await app?.stop();
  });
  /** Does something to the service, as a viewer does. */
  const cause = async (title) => {
    const panel = view.page.locator('app-try-an-outage details');
    if ((await panel.getAttribute('open')) === null) await panel.locator('summary').click();
    await view.button(title).click();
  };
  const connection = async () => Number((await view.state(/^Live Connection (\d+), live/))[1]);
  /** Waits until a connection is stable for the library, so that the next one is not held back. */
  const stable = () => view.state(/^Live Connection \d+, live on this page for (?:[5-9]|\d\d) s/);

  test('shows that it is live, and frames as they come', async () => {
    await view.state(/^Live Connection 1, live on this page for \d+ s\. No outage since \d\d:\d\d:\d\d\.$/);
    await expectText(view.rows.first(), /^\d\d:\d\d:\d\d\.\d{3} 1\.\d kB \{"batch":\d+,"trades":\[/);
    await expectText(view.page.locator('[data-figure=frames] .figure'), /^[23]\d\d$/);
    await expectText(view.page.locator('[data-figure=bytes] .figure'), /^\d{3}$/);
    await expectText(view.page.locator('[data-figure=latency] .figure').first(), /^\d+$/);
    await view.page.waitForFunction(() => /^● Live [23]\d\d\/s · Trade feed$/.test(document.title));
    await shot(view, 'live');
  });

  // What is over before one can read it is in the log.
  const recovered = [
    ['Drop connection', /The connection broke off without a close frame\. 1006 connection lost Lasted/],
    ['Let access expire', /The access of this connection expired\. 4003 access expired Lasted/],
    ['Flood', /The relay did not read the stream as fast as it came\. 1013 client too slow Lasted/],
  ];
  for (const [title, words] of recovered) {
    test(`recovers by itself: ${title}`, { timeout: 40_000 }, async () => {
      await stable();
      const before = await connection();
      await cause(title);
      await view.happened(words);
      await view.happened(new RegExp(`Connection ${before + 1} is open\\. Frames of that time are not sent again\\.`));
      assert.equal(await connection(), before + 1);
      await view.state(/Last outage at \d\d:\d\d:\d\d, for [\d.]+ m?s: The /);
    });
  }

  test('says why it waits and for how long, and draws the gap: a shutdown', { timeout: 40_000 }, async () => {
    await view.button('1 min').click();
    await stable();
    const before = await connection();
    await cause('Shut down');
    await view.happened(/The service shut down\. 1001 server shutdown Going on for/);
    await view.state(
      /^Reconnecting (The service shut down\. 1001 server shutdown|The ticket request got no answer\.) (Next attempt in \d+ seconds? \(attempt \d+\)|Attempt \d+ is going on)\. Without a connection for \d+ s\. .+/,
    );
    await expectText(view.page.locator('.cdk-live-announcer-element'), /^Reconnecting\. /);
    assert.match(await view.page.title(), /^◌ Reconnecting: The .* · Trade feed$/);
    const going = await bandsOf(view.page, 'frames');
    await shot(view, 'outage');
    assert.ok(going.bands.length > 0, 'a band is drawn while the outage goes on');
    const [, lasted] = await view.happened(/Lasted ([\d.]+) s\..* Connection \d+ is open/, 30_000);
    assert.equal(await connection(), before + 1);

    // The next sample is drawn beside the band.
    await view.state(/live on this page for [2-9] s/);
    const { bands, lines, width } = await bandsOf(view.page, 'frames');
    const widest = Math.max(...bands.map((band) => band.width));
    const plot = width - 46;
    const expected = (Number(lasted) / 60) * plot;
    assert.ok(
      Math.abs(widest - expected) <= 4 + expected * 0.1,
      `a band of ${widest} px for ${lasted} s, not ${expected}`,
    );
    assert.ok(lines.beside > 40, `the line is beside it (${lines.beside} columns)`);
    // Where it ends and where it begins again, half of its own width reaches over the edge.
    assert.ok(lines.within <= 3 * bands.length, `the line is broken there (${lines.within} columns)`);
    await shot(view, 'gap');
  });

  const stops = [
    {
      title: 'Connect elsewhere',
      words:
        /^Stopped Another connection of the same account took over: .* 4001 connection replaced It does not try again by itself\. Stopped at .* Find the other client, .* Connect again$/,
    },
    {
      title: 'Write to the service',
      words:
        /^Stopped The service says that a message was sent to it; the relay sends none\. 1008 policy violation It does not try again by itself\. .* Look for a proxy .* Connect again$/,
    },
    {
      title: 'Revoke access',
      words:
        /^Stopped Access was revoked\. The account is inactive or is not entitled to the stream\. HTTP 403 It does not try again by itself\. .* Restore access, .* Connect again$/,
      repair: 'Restore access',
    },
  ];
  for (const { title, words, repair } of stops) {
    test(`stops, says what to do, and connects again when asked: ${title}`, { timeout: 40_000 }, async () => {
      await view.state(/^Live/);
      await cause(title);
      await view.state(words);
      await view.happened(/Stopped\. /);
      await expectText(view.page.locator('.cdk-live-announcer-element'), /^The feed has stopped\. /);
      await shot(view, `stopped-${title.toLowerCase().replaceAll(' ', '-')}`);
      if (repair) await cause(repair);
      await view.button('Connect again').click();
      await view.state(/^Live Connection 1, /);
      const seen = await view.total('Frames');
      await view.page.waitForFunction(
        (before) => Number(document.querySelector('app-totals dd').innerText.replaceAll(',', '')) > before,
        seen,
      );
    });
  }
});

/** Waits until a place of the list is the one that the keyboard is at; gives the id of its row. */
const activeAt = async (page, place) => {
  const found = await page.waitForFunction((wanted) => {
    const list = document.querySelector('[role=listbox]');
    const row = document.getElementById(list.getAttribute('aria-activedescendant') ?? '');
    const at = row && { 2: 'second', [row.ariaSetSize]: 'last' }[row.ariaPosInSet];
    return at === wanted ? row.id : undefined;
  }, place);
  return found.jsonValue();
};

describe('on a service of its own', () => {
  let own;
  let app;
  before(async () => {
    // Numbered, so that one that is missing or comes twice is seen.
    const source = interval(5).pipe(
      map((number) => JSON.stringify({ number, market: number % 10 === 0 ? 'RARE' : 'ETH-USD' })),
    );
    own = await startOwnService(made, { source });
    // Once it is built, the oldest Node runs it as well.
    app = await startApp({ ...made, node: process.execPath }, { variables: own.variables });
  });
  after(async () => {
    await app?.stop();
    await own?.stop();
  });
  const live = (view) => view.state(/^Live/);
  const numbersOf = (messages) =>
    messages.flatMap(({ events }) =>
      events.filter(({ type }) => type === 'frame').map(({ data }) => JSON.parse(data).number),
    );

  test('two tabs share one connection to the service', async () => {
    const first = await openPage(browser, app.url);
    await live(first);
    const second = await openTab(first, app.url);
    await live(second);
    await second.rows.first().waitFor();
    await first.rows.first().waitFor();
    assert.equal(own.handshakes(), 1);
    assert.equal(
      await first.page.locator('app-try-an-outage details').count(),
      0,
      'nothing to try out at a real service',
    );
    assert.deepEqual([...first.errors, ...second.errors], []);
    await first.close();
  });

  test('a reload goes on by the event id: what came meanwhile arrives, nothing twice, no gap', async () => {
    let network;
    let backAt;
    const observer = await observe(`${app.url}/feed`);
    const view = await openPage(browser, app.url, {
      before: async (page) => {
        network = await recordNetwork(page);
        // What the page had reached when it was left.
        await page.addInitScript(() => {
          window.reachedBefore = Object.values({ ...sessionStorage }).find((value) => /^[\w-]+\.\d+\./.test(value));
        });
      },
    });
    await live(view);
    await view.rows.nth(10).waitFor();
    // The page comes back only when more frames have come.
    await view.page.route('**/feed', async (route) => {
      const seen = numbersOf(observer.messages()).length;
      await observer.until((messages) => numbersOf(messages).length > seen + 40);
      backAt = Date.now();
      await route.continue();
    });
    await view.page.reload();
    await live(view);
    await view.rows.nth(10).waitFor();
    await expectText(view.log.last(), /Connected (Nothing was missed|Connection 1 is open)\./);

    const reached = await view.page.evaluate(() => window.reachedBefore);
    const [first, second] = network.feeds();
    assert.equal(first.lastEventId, undefined);
    assert.equal(second.lastEventId, reached, 'the request carries what the page had reached');
    const until = observer.messages().findIndex(({ id }) => id === reached);
    assert.ok(until >= 0, 'which is a message that the other client got as well');
    const before = numbersOf(observer.messages().slice(0, until + 1));
    const behind = numbersOf(second.messages);
    assert.equal(behind[0], before.at(-1) + 1, 'the first frame is the one behind it');
    const next = behind.map((_, index) => behind[0] + index);
    assert.deepEqual(behind, next, 'none is missing, and none comes twice');
    const events = second.messages.flatMap((message) => message.events);
    const missed = events.filter(({ type, receivedAt }) => type === 'frame' && receivedAt < backAt);
    assert.ok(missed.length >= 40, `${missed.length} frames came while the page was away`);
    assert.ok(events.every(({ type }) => type !== 'gap'));
    assert.equal(await view.total('Gaps'), 0);
    assert.deepEqual(view.errors, []);
    await view.close();
    await observer.stop();
  });

  test('nothing that the browser receives holds a secret', { timeout: 40_000 }, async () => {
    let network;
    const view = await openPage(browser, app.url, { before: async (page) => (network = await recordNetwork(page)) });
    await view.state(/^Live Connection \d+, live on this page for (?:[5-9]|\d\d) s/);
    own.account.expireAccess();
    await view.happened(/The access of this connection expired\..* is open/);
    own.account.revokeAccess();
    await view.state(/^Stopped/);
    own.account.restoreAccess();
    await view.button('Connect again').click();
    await live(view);
    await view.page.reload();
    await live(view);
    await view.rows.first().waitFor();

    const received = (await network.everything()).join('\n');
    for (const part of ['"type":"frame"', '"access-expired"', '<app-root>', 'text/event-stream', '--accent']) {
      assert.ok(received.includes(part), `${part} was received`);
    }
    const secrets = own.secrets();
    assert.ok(secrets.length >= 4, 'the key and three tickets');
    const printed = `${received}\n${app.output()}\n${await view.page.content()}`;
    const forms = (secret) => [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')];
    assert.deepEqual(secrets.filter((secret) => forms(secret).some((form) => printed.includes(form))).length, 0);
    await view.close();
  });

  test('pause, filter, payload: by the keyboard alone', async () => {
    const view = await openPage(browser, app.url);
    const { page } = view;
    await live(view);
    await view.rows.nth(10).waitFor();

    await page.keyboard.press('p');
    await expectText(page.locator('.held'), /^Paused at \d\d:\d\d:\d\d\. [1-9][\d,]* newer frames?\.$/);
    const held = await view.rows.first().innerText();
    const count = (await expectText(page.locator('.held'), /([\d,]+) newer/))[1];
    await page.waitForFunction(
      (before) => !document.querySelector('.held').innerText.includes(` ${before} newer`),
      count,
    );
    assert.equal(await view.rows.first().innerText(), held, 'the list stands still');
    const spoken = page.locator('app-frames-panel [role=status]');
    await expectText(spoken, /^The list is paused\.$/);
    await page.keyboard.press('p');
    await page.locator('.held').waitFor({ state: 'detached' });

    await page.keyboard.press('/');
    await page.keyboard.type('rare');
    await expectText(page.locator('.scope'), /^\d+ match(es)?$/);
    await expectText(spoken, /^\d+ match(es)?$/);
    await expectText(view.rows.nth(2), /RARE/);
    const texts = await view.rows.allInnerTexts();
    assert.ok(
      texts.every((text) => text.includes('RARE')),
      'only those that match',
    );
    await shot(view, 'filter');

    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    const list = page.getByRole('listbox', { name: 'Frames' });
    assert.ok(await list.evaluate((element) => element === document.activeElement), 'the list has the focus');
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
    await shot(view, 'payload');
    await page.keyboard.press('Escape');
    await page.locator('app-frame-inspector').waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
    await page.keyboard.press('Escape');

    const slider = page.getByRole('slider', { name: /^Frames per second/ });
    await slider.focus();
    await page.keyboard.press('ArrowLeft');
    await page.waitForFunction(
      (element) => /^\d\d:\d\d:\d\d: frames per second [\d.]+ frames\/s$/.test(element.ariaValueText),
      await slider.elementHandle(),
    );
    await page.keyboard.press('t');
    assert.equal(await page.locator('html').getAttribute('data-theme'), 'light');
    assert.deepEqual(view.errors, []);
    await view.close();
  });

  for (const colorScheme of ['light', 'dark']) {
    test(`has no fault that axe knows, ${colorScheme}`, { timeout: 40_000 }, async () => {
      const view = await openPage(browser, app.url, { colorScheme, reducedMotion: 'reduce' });
      const { page } = view;
      await page.evaluate(readFileSync(join(made.folder, 'node_modules/axe-core/axe.min.js'), 'utf8'));
      const faults = async () => {
        const { violations } = await page.evaluate(() => window.axe.run());
        return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
      };
      await live(view);
      await view.rows.nth(5).click();
      await page.locator('app-frame-inspector pre').waitFor();
      assert.deepEqual(await faults(), []);
      await shot(view, `live-${colorScheme}`);
      own.account.revokeAccess();
      await view.state(/^Stopped/);
      assert.deepEqual(await faults(), []);
      await shot(view, `stopped-${colorScheme}`);
      own.account.restoreAccess();
      await view.button('Connect again').click();
      await live(view);
      await page.keyboard.press('?');
      assert.deepEqual(await faults(), []);
      await view.close();
    });
  }

  test('fits a phone', async () => {
    const view = await openPage(browser, app.url, {
      viewport: { width: 360, height: 780 },
      isMobile: true,
      hasTouch: true,
      deviceScaleFactor: 2,
    });
    const { page } = view;
    const overhang = () =>
      page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    await live(view);
    await view.rows.nth(5).waitFor();
    assert.equal(await overhang(), 0);
    await shot(view, 'phone');
    await view.rows.nth(2).tap();
    await page.locator('app-frame-inspector pre').waitFor();
    assert.equal(await overhang(), 0);
    await page.screenshot({ path: join(shots, 'phone-payload.png') });
    await view.button('Close').first().tap();
    own.account.revokeAccess();
    await view.state(/^Stopped/);
    assert.equal(await overhang(), 0);
    await shot(view, 'phone-stopped');
    own.account.restoreAccess();
    await view.button('Connect again').tap();
    await live(view);
    await view.close();
  });

  test('a stop: a tab that comes later tells when it was, and the focus is not lost with the button', async () => {
    const view = await openPage(browser, app.url);
    await live(view);
    own.account.revokeAccess();
    const [, stoppedAt] = await view.state(/^Stopped .* Stopped at (\d\d:\d\d:\d\d), [2-9] s ago\./);
    const later = await openTab(view, app.url);
    const [, known] = await later.state(/^Stopped .* Stopped at (\d\d:\d\d:\d\d), \d+ s ago\./);
    assert.equal(known, stoppedAt);
    own.account.restoreAccess();
    await view.button('Connect again').click();
    await live(view);
    assert.equal(await view.page.evaluate(() => document.activeElement.id), 'status-title', 'the focus is not lost');
    assert.deepEqual([...view.errors, ...later.errors], []);
    await view.close();
  });

  test('connects, whatever the storage of the tab holds', async () => {
    const view = await openPage(browser, app.url, {
      before: (page) =>
        page.addInitScript(() => sessionStorage.setItem(`rx-trade-feed:${location.origin}/feed`, 'ключ\n')),
    });
    await live(view);
    assert.deepEqual(view.errors, []);
    await view.close();
  });

  test(
    'says that the relay is gone, Ctrl-C ends it cleanly, and the page is back with it',
    { timeout: 60_000 },
    async () => {
      const view = await openPage(browser, app.url);
      await live(view);
      assert.equal(await app.stop(), 0);
      await view.state(
        /^Reconnecting The relay did not answer\. .*Attempt|^Reconnecting The relay did not answer\. Next attempt in/,
      );
      await view.page.locator('.hops li').nth(1).locator('.link.trying').waitFor();
      // The same page, for which nothing is known of the frames in between.
      app = await startApp(
        { ...made, node: process.execPath },
        { variables: own.variables, args: ['--port', new URL(app.url).port] },
      );
      await view.state(/^Live Connection \d+, live on this page for \d+ s\. Last outage at .*: The /, 40_000);
      const log = (await view.log.allInnerTexts()).join('\n');
      assert.match(log, /Lasted /);
      assert.doesNotMatch(log, /Going on for/);
      assert.deepEqual(view.errors, []);
      await view.close();
    },
  );
});

describe('tells the truth', () => {
  let own;
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
    own = await startOwnService(made, { source });
    app = await startApp(made, { variables: own.variables });
  });
  after(async () => {
    await app?.stop();
    await own?.stop();
  });
  afterEach(async () => {
    // What a test leaves behind when it fails is not the next one's.
    flow.isOn = true;
    own.service.failCredentials(false);
    own.account.restoreAccess();
    await fetch(`${app.url}/feed/restart`, { method: 'POST' });
  });
  const live = (view) => view.state(/^Live/);
  /** The duration that a text tells, in seconds. */
  const secondsIn = (text) => {
    const [, minutes = 0, whole] = /(?:(\d+) min )?([\d.]+) s/.exec(text) ?? assert.fail(`no duration: ${text}`);
    return Number(minutes) * 60 + Number(whole);
  };
  /** The history as the server gives it. */
  const history = async () => (await fetch(`${app.url}/history`)).json();
  /** Answers the page with another history than that of the server: what took a while there. */
  const withHistory = (change) => (page) =>
    page.route('**/history', async (route) => {
      const answer = await history();
      await route.fulfill({ json: { ...answer, ...change(answer) } });
    });
  const total = (view, name) => expectText(view.totalOf(name), /(.*)/).then(([text]) => text);

  test('a stop: one page connects again, and the other one is live as well', { timeout: 60_000 }, async () => {
    const asking = await openPage(browser, app.url);
    const other = await openPage(browser, app.url);
    for (const view of [asking, other]) await live(view);
    own.account.revokeAccess();
    for (const view of [asking, other])
      await view.state(
        /^Stopped Access was revoked\..* HTTP 403 .*This page looks again (in \d+ s|now)\. .*Connect again$/,
      );
    const known = await other.log.count();
    // It looks again several times, and that is no news.
    await other.page.waitForResponse('**/feed');
    await other.page.waitForResponse('**/feed');
    await other.state(/^Stopped/);
    assert.equal(await other.log.count(), known, 'the same stop is told once');
    const later = await openPage(browser, app.url);
    await later.state(/^Stopped Access was revoked\./);
    own.account.restoreAccess();
    await asking.button('Connect again').click();
    for (const view of [asking, other, later]) await live(view);
    for (const view of [asking, other, later]) {
      await view.happened(/^.* Stopped\. .* Lasted [\d.]+ s\. .*Connection \d+ is open\./);
      assert.match(await total(view, 'Reconnect attempts'), /^\d+ (?!.*not entitled)/);
      assert.deepEqual(view.errors, []);
      await view.close();
    }
  });

  test('an outage that ends in a stop: one duration, in words, in the log and in the totals', async () => {
    const view = await openPage(browser, app.url);
    await live(view);
    const before = secondsIn(await total(view, 'Lost time'));
    own.service.failCredentials(true);
    own.account.expireAccess();
    await view.state(/^Reconnecting .* Without a connection for [3-9] s\./);
    own.account.revokeAccess();
    own.service.failCredentials(false);
    await view.state(/^Stopped /, 30_000);
    await view.page.waitForFunction(
      (since) => performance.now() > since,
      await view.page.evaluate(() => performance.now() + 2_000),
    );
    own.account.restoreAccess();
    await view.button('Connect again').click();
    const [said] = await view.state(/Last outage at \d\d:\d\d:\d\d, for [\d.]+ (min \d+ )?s: /, 30_000);
    assert.ok(secondsIn(said) >= 5, said);
    const [logged] = await view.happened(/Lasted ([\d.]+) s\./);
    assert.equal(secondsIn(logged.slice(logged.indexOf('Lasted'))), secondsIn(said));
    const lost = secondsIn(await total(view, 'Lost time')) - before;
    assert.ok(Math.abs(lost - secondsIn(said)) < 0.11, `${lost} s in the totals, ${said}`);

    // The server tells the same to a page that is loaded later. It knew of the opening some ms earlier.
    await view.page.reload();
    const [later] = await view.state(/^Live .* Last outage at \d\d:\d\d:\d\d, for [\d.]+ s: /);
    assert.ok(
      Math.abs(secondsIn(later.slice(later.indexOf('Last'))) - secondsIn(said)) < 0.3,
      `${said}, then ${later}`,
    );
    const lostLater = secondsIn(await total(view, 'Lost time')) - before;
    assert.ok(Math.abs(lostLater - lost) < 0.3, `${lost} s, then ${lostLater} s`);
    assert.deepEqual(view.errors, []);
    await view.close();
  });

  test('a reload begins with what the server knows, and counts nothing twice', { timeout: 60_000 }, async () => {
    const view = await openPage(browser, app.url);
    await live(view);
    own.account.expireAccess();
    await view.happened(/^\S+ The access of this connection expired\..* is open\. Frames of that time are/);
    const since = await view.page.locator('#totals-title').innerText();
    const entries = await view.log.allInnerTexts();
    const gaps = await total(view, 'Gaps');
    for (let reload = 0; reload < 3; reload += 1) {
      const seen = await view.total('Frames');
      await view.page.reload();
      await live(view);
      await expectText(view.page.locator('#totals-title'), new RegExp(`^${since}$`));
      assert.ok((await view.total('Frames')) >= seen);
      assert.deepEqual(await view.log.allInnerTexts(), entries);
      assert.equal(await total(view, 'Gaps'), gaps);
    }
    // No second is counted twice in the charts either.
    const slider = view.page.getByRole('slider', { name: /^Frames per second/ });
    await view.page.waitForFunction((element) => Number(element.ariaValueMax) > 5, await slider.elementHandle());
    await slider.focus();
    const rates = [];
    for (let point = 0; point < 6; point += 1) {
      await view.page.keyboard.press('ArrowLeft');
      // In an outage there is none.
      const rate = /([\d.]+) frames\/s/.exec(await slider.getAttribute('aria-valuetext'))?.[1];
      if (rate !== undefined) rates.push(Number(rate));
    }
    assert.ok(rates.length >= 3 && Math.max(...rates) < 320, `250 frames a second at the most, and not ${rates}`);

    const other = await openPage(browser, app.url);
    await live(other);
    await other.rows.nth(5).waitFor();
    flow.isOn = false;
    const { totals } = await history();
    const all = new RegExp(`^${totals.frames.toLocaleString('en-US')}$`);
    for (const page of [view, other]) await expectText(page.totalOf('Frames'), all);
    flow.isOn = true;
    for (const page of [view, other]) {
      assert.deepEqual(page.errors, []);
      await page.close();
    }
  });

  test('the history is behind the guard, bounded, and its failures are as public as those of the relay', async () => {
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
      assert.ok(!failure.message.includes('access expired'), 'the words of the service are not handed on');
    }
  });

  test('lost time is one figure', async () => {
    const view = await openPage(browser, app.url, {
      before: withHistory(({ totals }) => ({ totals: { ...totals, lostMs: 96_000 } })),
    });
    await expectText(view.totalOf('Lost time'), /^1 min 36 s$/);
    const sizes = await view
      .totalOf('Lost time')
      .evaluate((element) =>
        [element, ...element.querySelectorAll('*')].map((part) => getComputedStyle(part).fontSize),
      );
    assert.equal(new Set(sizes).size, 1, `one size, not ${sizes}`);
    await view.close();
  });

  test('the axis spans what the button says: before there is so much, and after a reload', async () => {
    const view = await openPage(browser, app.url, {
      before: withHistory(({ until }) => ({
        since: until - 2_000,
        openedAt: until - 2_000,
        seconds: [],
        events: [],
      })),
    });
    const { page } = view;
    /** Where the line begins, in seconds before now, by a scale of so many minutes. */
    const begin = async (minutes) => {
      const { lineFrom, width } = await bandsOf(page, 'frames');
      const plot = width - 46;
      return ((width - lineFrom) / plot) * minutes * 60;
    };
    const pressed = page.locator('.spans button[aria-pressed=true]');
    const known = await page.evaluate(() => performance.now());
    for (const minutes of [5, 1, 15]) {
      await view.button(`${minutes} min`).click();
      await expectText(pressed, new RegExp(`^${minutes} min$`));
      await page.locator('[data-figure=frames] .figure', { hasText: /\d/ }).waitFor();
      const slider = page.getByRole('slider', { name: new RegExp(`^Frames per second: the last ${minutes} min`) });
      await page.waitForFunction((element) => Number(element.ariaValueMax) >= 3, await slider.elementHandle());
      const age = 2 + (await page.evaluate((since) => performance.now() - since, known)) / 1_000;
      const found = await begin(minutes);
      assert.ok(Math.abs(found - age) < 4 + minutes, `${minutes} min: the line begins ${found} s ago, not ${age}`);
    }
    await view.button('1 min').click();
    await page.reload();
    await expectText(pressed, /^1 min$/);
    await view.close();
  });

  test('a flood is cut off, and the line beside it can still be read', { timeout: 40_000 }, async () => {
    const view = await openPage(browser, app.url);
    const { page } = view;
    await live(view);
    await view.button('1 min').click();
    const slider = await page.getByRole('slider', { name: /^Bytes per second/ }).elementHandle();
    await page.waitForFunction((element) => Number(element.ariaValueMax) >= 10, slider);
    const flood = JSON.stringify({ flood: 'x'.repeat(16 * 1024) });
    for (let pushed = 0; pushed < 100; pushed += 1) flow.extra$.next(flood);
    await expectText(page.locator('[data-figure=bytes] .cut'), /^1 second is above the scale: up to 1\.\d MB\/s\.$/);
    const points = Number(await slider.getAttribute('aria-valuemax'));
    await page.waitForFunction(([element, from]) => Number(element.ariaValueMax) >= from + 4, [slider, points]);
    const { lastLineAt, height } = await bandsOf(page, 'bytes');
    assert.ok(lastLineAt < height * 0.75, `the line is ${lastLineAt} px from the top of ${height}`);
    await shot(view, 'flood');
    await view.close();
  });

  test('what a filter found is marked, in the rows and in the payload, from one match to the next', async () => {
    const view = await openPage(browser, app.url);
    const { page } = view;
    await live(view);
    await page.fill('#filter', 'needle');
    await expectText(view.rows.nth(2).locator('mark').first(), /^needle$/);
    await view.rows.nth(1).click();
    const inspector = page.locator('app-frame-inspector');
    const current = inspector.locator('pre mark.current');
    const isInSight = async () =>
      page.waitForFunction(() => {
        const mark = document.querySelector('app-frame-inspector pre mark.current')?.getBoundingClientRect();
        const pre = document.querySelector('app-frame-inspector pre').getBoundingClientRect();
        return mark !== undefined && mark.top >= pre.top && mark.bottom <= pre.bottom;
      });
    assert.equal(await inspector.locator('pre mark').count(), 3);
    for (const [place, key] of [
      [1, undefined],
      [2, 'n'],
      [3, 'n'],
      [1, 'n'],
      [3, 'N'],
    ]) {
      if (key) await page.keyboard.press(key);
      await expectText(inspector.locator('.matches'), new RegExp(`^${place} of 3`));
      await isInSight();
      assert.equal(await current.innerText(), 'needle');
    }
    await inspector.getByRole('button', { name: 'Next match' }).click();
    await expectText(inspector.locator('.matches'), /^1 of 3/);
    await shot(view, 'matches');
    // As it stands in the payload, which is shown with spaces that are not in it.
    await page.fill('#filter', '"price":"eth');
    await expectText(inspector.locator('pre mark.current').first(), /^"price":/);
    assert.deepEqual(view.errors, []);
    await view.close();
  });

  test('the title of the page says it, and a sound if one wants it', { timeout: 40_000 }, async () => {
    const view = await openPage(browser, app.url, {
      before: (page) =>
        page.addInitScript(() => {
          window.beeps = 0;
          const { start } = OscillatorNode.prototype;
          OscillatorNode.prototype.start = function (...given) {
            window.beeps += 1;
            return start.apply(this, given);
          };
        }),
    });
    const { page } = view;
    const title = (pattern) =>
      page.waitForFunction((source) => new RegExp(source).test(document.title), pattern.source, { timeout: 15_000 });
    const beeps = () => page.evaluate(() => window.beeps);
    const stop = async () => {
      own.account.revokeAccess();
      await view.state(/^Stopped/);
      await title(/^■ Stopped: Access was revoked · Trade feed$/);
    };
    const goOn = async () => {
      own.account.restoreAccess();
      await view.button('Connect again').click();
      await title(/^● Live [\d,]+\/s · Trade feed$/);
    };
    await title(/^● Live [\d,]+\/s · Trade feed$/);
    await stop();
    assert.equal(await beeps(), 0, 'it is off at first');
    await goOn();
    await view.button('Sound: off').click();
    await view.button('Sound: on').waitFor();
    await page.reload();
    await live(view);
    await view.button('Sound: on').waitFor();
    // A browser lets a page sound once somebody has touched it.
    await page.locator('h1').click();
    await stop();
    await page.waitForFunction(() => window.beeps > 0);
    await goOn();
    const before = await beeps();
    own.service.failCredentials(true);
    own.account.expireAccess();
    await title(/^◌ Reconnecting: /);
    await page.waitForFunction((known) => window.beeps > known, before);
    own.service.failCredentials(false);
    await title(/^● Live/);
    await view.button('Sound: on').click();
    const last = await beeps();
    await stop();
    assert.equal(await beeps(), last, 'it is off again');
    await goOn();
    assert.deepEqual(view.errors, []);
    await view.close();
  });
});
