// The example app in Chromium, started like `npm start`: what the page shows and says after each event.
import { after, afterEach, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { filter, interval, map } from 'rxjs';
import { freePort } from '../peers/program.mjs';
import { restore, startApp, startTestService } from './example-app/app.mjs';
import { recordNetwork } from './example-app/network.mjs';
import {
  built,
  eventually,
  expectAccessible,
  expectFocus,
  expectText,
  expectToFit,
  openPage,
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
  test('reconnects automatically when the access expires, which only the log shows', async () => {
    // Once the connection is stable, the library reconnects without delay.
    await view.state(new RegExp(`^Live Connected on this page for ${secondsFrom(5)}`));
    const before = await connection();
    await cause('Let access expire');
    await view.happened(/4003 access expired Lasted .*A new connection is open\./);
    assert.equal(await connection(), before + 1);
    await view.state(/Last outage at \d\d:\d\d:\d\d, for [\d.]+ m?s: Th(?:e|is) /);
  });

  const stops = [
    { title: 'Connect elsewhere', words: /^Stopped .* 4001 connection replaced .* Find the other client, / },
    { title: 'Write to the service', words: /^Stopped .* 1008 policy violation .* Look for a proxy / },
    {
      title: 'Revoke access',
      words: /^Stopped Access was revoked\. .* HTTP 403 .* Restore access, /,
      repair: 'Restore access',
    },
  ];
  for (const { title, words, repair } of stops) {
    test(`stops with an advice, and connects again after a click: ${title}`, async () => {
      await view.state(/^Live/);
      await cause(title);
      await view.state(words);
      await view.happened(/Stopped\. /);
      await expectText(view.page.locator('.cdk-live-announcer-element'), /^The feed has stopped\. /);
      await screenshot(view, `stopped-${title.toLowerCase().replaceAll(' ', '-')}`);
      if (repair) await cause(repair);
      await view.button('Connect again').click();
      await view.state(/^Live Connected /);
      // The button has disappeared.
      await expectFocus(view, 'status-title');
      assert.equal(await connection(), 1);
    });
  }
});

describe('with the service of the test', () => {
  const flow = { isOn: true };
  let local;
  let app;
  before(async () => {
    const source = interval(5).pipe(
      filter(() => flow.isOn),
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
  afterEach(() => {
    flow.isOn = true;
    return restore(local, app);
  });
  /** Loads the history of the server. */
  const history = async () => (await fetch(`${app.url}/history`)).json();

  test('the browser receives no secret', async (t) => {
    let everything;
    const view = await openPage(t, app.url, { before: async (page) => (everything = await recordNetwork(page)) });
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

    const received = everything();
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
    await expectText(page.locator('.paused'), /[1-9][\d,]* newer/);
    const firstRow = await view.rows.first().innerText();
    await expectText(page.locator('.paused'), /[1-9]\d+ newer/);
    assert.equal(await view.rows.first().innerText(), firstRow, 'the list does not change');
    const announced = page.locator('app-frames-panel [role=status]');
    await expectText(announced, /^The list is paused\.$/);
    await page.keyboard.press('p');
    await page.locator('.paused').waitFor({ state: 'detached' });

    await page.keyboard.press('/');
    await page.keyboard.type('rare');
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
    await page.waitForFunction(() => {
      const list = document.querySelector('[role=listbox]');
      return document.getElementById(list.getAttribute('aria-activedescendant') ?? '')?.ariaPosInSet === '1';
    });
    await page.keyboard.press('Enter');
    await expectText(page.locator('app-frame-inspector pre'), /"market": "RARE"/);
    await screenshot(view, 'payload');
    await page.keyboard.press('Escape');
    await page.locator('app-frame-inspector').waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
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

  test('a reload starts with the history of the server, and counts nothing twice', async (t) => {
    const view = await openPage(t, app.url);
    await view.live();
    local.account.expireAccess();
    await view.happened(/4003 access expired .* is open\./);
    const since = await view.page.locator('#totals-title').innerText();
    const entries = await view.log.allInnerTexts();
    const gaps = await view.total('Gaps');
    await view.page.reload();
    await view.live();
    await expectText(view.page.locator('#totals-title'), new RegExp(`^${since}$`));
    await eventually(async () => {
      assert.deepEqual(await view.log.allInnerTexts(), entries);
      assert.equal(await view.total('Gaps'), gaps);
    });
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

  test('the history is protected by the guard, and contains public failures only', async () => {
    const refused = await fetch(`${app.url}/history`, { headers: { 'Sec-Fetch-Site': 'cross-site' } });
    assert.equal(refused.status, 403);
    const { events } = await history();
    const failures = events.flatMap(({ failure }) => failure ?? []);
    assert.ok(failures.length > 0);
    const allowed = ['code', 'stage', 'verdict', 'status', 'closeCode', 'retryAfterMs', 'meaning', 'message', 'advice'];
    const counted = ['endedAt', 'uptimeMs', 'framesReceived', 'name', 'previous'];
    const others = failures.flatMap(Object.keys).filter((key) => ![...allowed, ...counted].includes(key));
    assert.deepEqual(others, []);
    // The close reasons of the service are not forwarded.
    const reasons = /\d access expired|connection replaced|client too slow|server shutdown/;
    for (const { message } of failures) assert.doesNotMatch(message, reasons);
  });

  test('Ctrl-C stops the server cleanly; the page reports it, and reconnects after the restart', async (t) => {
    const view = await openPage(t, app.url);
    await view.live();
    assert.equal(await app.stop(), 0);
    await view.state(/^Reconnecting The relay didn't answer\. /);
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
