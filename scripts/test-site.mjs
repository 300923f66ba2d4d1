// Tests the built site: its search, links and plain pages, and ten pages in Chromium at two sizes. Builds the site first. Ends with the line `N passed, N failed`.
//
//   npm run test:site
//   npm run test:site -- search        the files with this in their name
//
// With RX_TRADE_FEED_SITE_IS_BUILT=1 it uses the site that exists, with RX_TRADE_FEED_SCREENSHOTS=folder it saves screenshots there.
import { spawnSync } from 'node:child_process';
import { chromium } from '../test/apps/support.mjs';
import { finish, prepare, runTests, testFiles } from './run-tests.mjs';

const files = testFiles('test/site', process.argv.slice(2));

/** Builds the site. A warning fails the build. */
const buildSite = () => {
  if (process.env.RX_TRADE_FEED_SITE_IS_BUILT) return;
  const { status, stdout, stderr } = spawnSync('npm', ['run', 'docs', '--silent'], { encoding: 'utf8' });
  const warnings = `${stdout}${stderr}`
    .split('\n')
    .filter((line) => /\(!\)|\bwarn/i.test(line) && !/^npm warn/.test(line));
  if (status !== 0 || warnings.length > 0) throw new Error(`The build of the site failed:\n${stdout}${stderr}`);
};

await prepare(() => {
  buildSite();
  process.env.CHROMIUM_PATH = chromium();
});
finish(await runTests(files, { concurrency: 1, timeoutMs: 5 * 60_000 }));
