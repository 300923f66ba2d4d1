import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { expectAccessible, expectToFit, launchChromium, newPage, patienceMs, serve } from '../apps/support.mjs';
import { answerFile, filesOf } from './site-files.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const sizes = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 900 } };
const pages = [
  ...['/', '/project/overview', '/sharing', '/options', '/operators', '/recipes/postgres', '/how-to/query-log'],
  ...['/failures/', '/failures/stream', '/performance', '/reliability', '/api/', '/api/index/functions/tradeFeed$'],
];

let browser;
let site;
before(async () => {
  site = await serve(answerFile);
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  site?.close();
});

/** The guides, which people read on phones. Leaves out the reference. */
const guides = filesOf('.html')
  .filter((file) => !/^(404|api\/)/.test(file))
  .map((file) => `/${file.replace('.html', '')}`);

const open = async (path, options) => {
  const { page, errors, close } = await newPage(browser, { reducedMotion: 'reduce', ...options });
  await page.goto(site.url + path, { waitUntil: 'load' });
  await page.waitForSelector('.VPContent h1');
  return { page, errors, close };
};

/** What depends on the size of a page, or on its theme. The other rules of axe find the same in each. */
const rulesOfLook = ['color-contrast', 'scrollable-region-focusable', 'button-name', 'aria-hidden-focus'];

// Width depends on the size and contrast on the theme, so both sizes and both themes are enough, not all four pairs.
for (const path of pages)
  test(`${path} on a phone, light, and on a desktop, dark: no sideways scrolling, no problem of access, no error`, async () => {
    const { page, errors, close } = await open(path, { viewport: sizes.phone, colorScheme: 'light' });
    await page.evaluate(axe);
    await expectToFit(page);
    await expectAccessible(page, { runOnly: { type: 'rule', values: rulesOfLook } });
    await page.setViewportSize(sizes.desktop);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.locator('html.dark').waitFor();
    await expectToFit(page);
    await expectAccessible(page);
    assert.deepEqual(errors, []);
    await close();
  });

test('no guide scrolls sideways on a phone, where tables with prose show each cell whole, and a desktop shows each line of code whole', async () => {
  // The width is a matter of HTML and CSS. The scripts, which other tests run, take more than half of the time.
  const { page, close } = await open('/options', { viewport: sizes.phone, javaScriptEnabled: false });
  const found = [];
  for (const path of guides) {
    await page.goto(site.url + path, { waitUntil: 'load' });
    found.push(
      ...(await page.evaluate((path) => {
        const { clientWidth, scrollWidth } = document.documentElement;
        const isClipped = (element) =>
          element.scrollWidth > element.clientWidth || element.getBoundingClientRect().right > clientWidth;
        const all = path === '/options' ? 'table, td' : '.stacks, .stacks td';
        const cells = [...document.querySelectorAll(all)].filter(isClipped);
        return [
          ...(scrollWidth > clientWidth ? [`${path}: ${scrollWidth - clientWidth} px too wide`] : []),
          ...cells.map((cell) => `${path}: ${cell.textContent.slice(0, 80)}`),
        ];
      }, path)),
    );
    await page.setViewportSize(sizes.desktop);
    found.push(
      ...(await page.evaluate((path) => {
        const isClipped = ({ scrollWidth, clientWidth }) => scrollWidth > clientWidth;
        const clipped = [...document.querySelectorAll('.vp-doc pre')].filter(isClipped);
        return clipped.map(({ textContent }) => `${path}: ${textContent.slice(0, 80)}`);
      }, path)),
    );
    await page.setViewportSize(sizes.phone);
    if (path === '/options')
      assert.ok(
        (await page.locator('.stacks td[data-label="default"]').count()) > 10,
        'the table of options is stacked',
      );
  }
  assert.deepEqual(found, []);
  assert.ok(guides.length > 30, `${guides.length} guides`);
  await close();
});

test('the search finds a page and opens it with the keyboard alone', async () => {
  const { page, close } = await open('/', { viewport: sizes.desktop });
  await page.keyboard.press('Control+k');
  await page.locator('#localsearch-input').waitFor();
  await page.keyboard.type('4001');
  // While the keys arrive, the page can already show the results of a part of the text.
  await page.locator('.result.selected[href*="/failures/stream.html#connection-replaced"]').waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/failures\/stream\.html#connection-replaced/);
  await close();
});

/** Returns the color in the corner of an image on the page. */
const cornerOf = async (page, image) => {
  const { x, y } = await image.boundingBox();
  const png = await page.screenshot({ clip: { x: x + 12, y: y + 4, width: 1, height: 1 } });
  return page.evaluate(
    async (source) => {
      const bitmap = await createImageBitmap(await (await fetch(source)).blob());
      const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 });
      const context = canvas.getContext('2d');
      context.drawImage(bitmap, 0, 0);
      return [...context.getImageData(0, 0, 1, 1).data];
    },
    `data:image/png;base64,${png.toString('base64')}`,
  );
};

/** Waits until the corner of an image has a color: the page is drawn some time after its theme has changed. */
const cornerIs = async (page, image, color) => {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const found = await cornerOf(page, image);
    if (isDeepStrictEqual(found, color)) return;
    if (performance.now() > deadline) assert.deepEqual(found, color);
  }
};

test('the diagrams have the theme of the page', async () => {
  const { page, close } = await open('/operators', { viewport: sizes.desktop, colorScheme: 'light' });
  const image = page.locator('.vp-doc img').first();
  await image.scrollIntoViewIfNeeded();
  await cornerIs(page, image, [255, 255, 255, 255]);
  await page.locator('.VPNavBar .VPSwitchAppearance:visible').click();
  await page.locator('html.dark').waitFor();
  await cornerIs(page, image, [22, 22, 24, 255]);
  await close();
});

test('on a phone a diagram is wider than the screen, and says so', async () => {
  const { page, close } = await open('/operators', { viewport: sizes.phone });
  const diagrams = await page.locator('p.diagram, .live-diagram .drawing').evaluateAll((all) =>
    all.map((each) => ({
      scrolls: each.scrollWidth > each.clientWidth,
      hint: getComputedStyle(each, '::before').content,
    })),
  );
  assert.ok(diagrams.length >= 20, `${diagrams.length} diagrams`);
  assert.deepEqual(
    diagrams.filter(({ scrolls, hint }) => !scrolls || !hint.includes('Swipe')),
    [],
  );
  await close();
});

test('the sidebar is scrolled to the page', async () => {
  const { page, close } = await open('/reliability', { viewport: sizes.desktop });
  await page.waitForFunction(() => {
    const { top, bottom } = document.querySelector('.VPSidebar a[href*="/reliability"]').getBoundingClientRect();
    return top > 0 && bottom < innerHeight;
  });
  assert.ok(await page.locator('.VPSidebar').evaluate((sidebar) => sidebar.scrollTop > 0));
  await close();
});
