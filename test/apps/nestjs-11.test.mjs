// docs/nestjs.md in a new application of NestJS 11, which uses CommonJS and ts-jest.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jestSection } from './nestjs/app.mjs';
import { testGuide } from './nestjs/follow-guide.mjs';

testGuide({
  version: 11,
  // Replaces the section `jest` that `nest new` writes.
  section: jestSection(),
  // The template skips declarations. Here they're checked, so that the package's declarations fit those of NestJS 11. Of the declarations in
  // `@types`, only those that the application uses: all others, of Babel for example, take a quarter of the time.
  prepare: async (app) => {
    const tsconfig = join(app, 'tsconfig.json');
    const text = await readFile(tsconfig, 'utf8');
    await writeFile(
      tsconfig,
      text.replace(
        '"skipLibCheck": true',
        '"skipLibCheck": false, "skipDefaultLibCheck": true, "types": ["node", "jest"]',
      ),
    );
  },
  compiled: /require\("rx-trade-feed\/nestjs"\)/,
  passed: /Tests: +2 passed, 2 total/,
  // Both test files in one process: ts-jest checks the types once.
  testArgs: ['--runInBand'],
});
