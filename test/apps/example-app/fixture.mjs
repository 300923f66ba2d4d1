// The setup of the browser tests of the example app: the built app, Chromium, and screenshots.
import { after, before } from 'node:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium as chromiumDriver } from 'playwright-core';
import { chromium, chromiumArgs } from '../support.mjs';
import { buildApp } from './build-app.mjs';

/** The built app. Set before the first test. */
export let built;
/** Chromium. Set before the first test. */
export let browser;
/** The folder for screenshots. Tests take none without it, because each costs processor time and no test reads it. */
const screenshots = process.env.RX_TRADE_FEED_SCREENSHOTS;

before(
  async () => {
    built = await buildApp();
    browser = await chromiumDriver.launch({ executablePath: chromium(), args: chromiumArgs });
  },
  { timeout: 300_000 },
);
after(() => browser?.close());

/** Takes a screenshot of the whole page, or of the visible part with `fullPage: false`, if there is a folder for it. */
export const screenshot = async ({ page }, name, { fullPage = true } = {}) => {
  if (screenshots === undefined) return;
  if (fullPage) await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage });
};

/** Returns the accessibility violations that axe finds. */
export const violationsOf = async ({ page }) => {
  await page.evaluate(readFileSync(join(built.folder, 'node_modules/axe-core/axe.min.js'), 'utf8'));
  const { violations } = await page.evaluate(() => window.axe.run());
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
};

/** Returns by how many pixels the page is wider than the window. */
export const overflowOf = ({ page }) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
