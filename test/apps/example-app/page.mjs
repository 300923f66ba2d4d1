// Opens the page, and finds its parts.
import { expectText } from './expect-text.mjs';

/** Opens the page in a new browser context. */
export const openPage = async (browser, url, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, ...options });
  // A machine can be busy.
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const errors = [];
  page.on('pageerror', (error) => errors.push(String(error.stack)));
  const view = viewOf(page, errors);
  await options.before?.(page);
  await page.goto(url);
  return view;
};

/** Opens another tab of the same browser context. */
export const openTab = async ({ page }, url) => {
  const tab = await page.context().newPage();
  const errors = [];
  tab.on('pageerror', (error) => errors.push(String(error.stack)));
  await tab.goto(url);
  return viewOf(tab, errors);
};

const viewOf = (page, errors) => {
  const state = page.locator('app-status-panel .state');
  const totals = page.locator('app-totals dl > div');
  const log = page.locator('app-event-log li');
  const totalOf = (name) =>
    totals.filter({ has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) }).locator('dd');
  return {
    page,
    errors,
    log,
    /** Waits until the text of the status matches a pattern. */
    state: (pattern) => expectText(state, pattern),
    /** Waits until the newest entry of the log matches a pattern. */
    happened: (pattern) => expectText(log.first(), pattern),
    rows: page.locator('.row'),
    button: (name) => page.getByRole('button', { name, exact: true }),
    /** Finds a total by its name. */
    totalOf,
    /** Returns a total by its name, as a number. */
    total: async (name) => Number.parseFloat((await totalOf(name).innerText()).replaceAll(',', '')),
    close: () => page.context().close(),
  };
};
