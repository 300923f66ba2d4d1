// Builds the parts that have changed, then starts the server. Ctrl-C stops it.
import { existsSync } from 'node:fs';
import { build, isLibraryStale, isPageBuildable, staleParts } from './build.mjs';

const built = new URL('../dist/server/', import.meta.url);
const fail = (message) => {
  console.error(message);
  process.exit(1);
};

const { server, page } = staleParts();
if (page && !isPageBuildable() && !existsSync(new URL('../dist/page/index.html', import.meta.url))) {
  fail(
    `The page is not built, and Angular 22 does not build on this Node (${process.version}). It needs Node 22.22, 24.15, 26 or later.\n` +
      'Put one of them first on PATH, and run `npm start` again. After the build (`npm run build`), this Node can run the server too.',
  );
} else if (page && !isPageBuildable()) {
  console.warn(
    `The page has changed since the last build. Angular 22 does not build on this Node (${process.version}), so the old page is served.`,
  );
} else if (page) build('page');
if (server) build('server');
if (isLibraryStale())
  console.warn('The library has changed since it was installed here. To install it again, run: npm run update-library');

const { readSettings, SettingsError, usage } = await import(new URL('settings.js', built));
if (process.argv.includes('--help')) {
  console.log(usage);
  process.exit(0);
}
let settings;
try {
  settings = readSettings(process.argv.slice(2), process.env);
} catch (error) {
  if (!(error instanceof SettingsError)) throw error;
  fail(`${error.message}\n\n${usage}`);
}

const { startServer } = await import(new URL('main.js', built));
const running = await startServer(settings).catch((error) =>
  fail(
    error.code === 'EADDRINUSE'
      ? `Another program uses port ${settings.port}. Choose another port: npm start -- --port 4701`
      : String(error.stack ?? error),
  ),
);
console.log(`\n  The page is at ${running.url}\n  It shows ${running.source}. Ctrl-C stops the server.\n`);

let isEnding = false;
const end = async () => {
  // A second Ctrl-C exits at once.
  if (isEnding) process.exit(130);
  isEnding = true;
  await running.close();
  process.exit(0);
};
process.on('SIGINT', end).on('SIGTERM', end);
