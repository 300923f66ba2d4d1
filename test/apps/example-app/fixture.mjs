// The setup of the browser tests of the example app: the built app, Chromium, and a folder for screenshots.
import { after, before } from 'node:test';
import { readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium as chromiumDriver } from 'playwright-core';
import { chromium, chromiumArgs } from '../support.mjs';
import { buildApp } from './build-app.mjs';

/** The built app. Set before the first test. */
export let built;
/** Chromium. Set before the first test. */
export let browser;
let screenshots;

before(
  async () => {
    built = await buildApp();
    browser = await chromiumDriver.launch({ executablePath: chromium(), args: chromiumArgs });
    screenshots = await mkdtemp(join(tmpdir(), 'rx-trade-feed-screenshots-'));
  },
  { timeout: 300_000 },
);
after(async () => {
  await browser?.close();
  console.log(`screenshots: ${screenshots}`);
});

/** Takes a screenshot of the whole page, or of the visible part with `fullPage: false`. */
export const screenshot = async ({ page }, name, { fullPage = true } = {}) => {
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
