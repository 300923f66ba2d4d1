import { expect, it } from '@jest/globals';
import { build } from 'esbuild';
import { join } from 'node:path';

// A page's code can't contain a key by accident: it has no option for one and no request that sends one.
it.each(['browser', 'angular'])(
  'a page with rx-trade-feed/%s cannot request a ticket, and has no place for a key',
  async (entry) => {
    const { outputFiles } = await build({
      absWorkingDir: join(import.meta.dirname, '../..'),
      entryPoints: [`src/${entry}/index.ts`],
      ...{ bundle: true, minify: true, format: 'esm', platform: 'browser', target: 'es2022', write: false },
      external: ['rxjs', 'rxjs/*', '@angular/core'],
    });
    const text = outputFiles[0]?.text ?? '';
    expect(text).toContain('relay-refused');
    expect(text).not.toMatch(/x-api-key|TRADE_FEED_|wss\/tickets|bearer|WebSocket/i);
  },
);
