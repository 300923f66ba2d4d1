import { describe, expect, it } from '@jest/globals';
import { join } from 'node:path';
import { read, root } from './fences.js';
import { siteLibrary } from './site.js';

const { imageOnSite, linkOnSite, llmsText, plainText, promises, titleOf, tokenize, windowRun, backoffRun } =
  await siteLibrary(
    ...['promises.mjs', 'repository-links.mjs', 'plain-pages.mjs', 'search-options.mjs', 'diagrams/live.mjs'],
  );

describe('the promises of the landing page', () => {
  it('have the figures of the guides', () => {
    for (const { figure } of promises()) expect(figure).toMatch(/^\d[\d\u00a0]*(\.\d)?(×| million)?$/);
    expect(promises()).toHaveLength(3);
  });

  it.each([
    ['a missing table', read('docs/reliability.md').replaceAll('sent = received', 'x'), 'No table has the row'],
    [
      'a lost frame',
      read('docs/reliability.md').replace(/(missed in gaps +\| yes +\| )\d/, '$19'),
      'lost frames without a gap',
    ],
  ])('are not shown with %s', (_what, reliability, message) => {
    expect(() => promises(undefined, reliability)).toThrow(message);
  });
});

describe('a link of a document', () => {
  it.each([
    ['sharing.md', './windows.md#time', '/windows.md#time'],
    ['sharing.md', '../README.md#ten-lines', '/project/overview.md#ten-lines'],
    ['sharing.md', 'options.md#the-feed', '/options.md#the-feed'],
    ['sharing.md', '../examples/share.mjs', '/examples/share.md'],
    ['project/overview.md', 'docs/relay.md', '/relay.md'],
    ['project/examples.md', 'nestjs-angular/README.md', '/project/example-app.md'],
    ['failures/access-expired.md', '../sharing.md', '/sharing.md'],
    ['reconnecting.md', '../bench/reconnect/index.mjs', undefined],
  ])('of %s to %s is %s on the site', (page, href, expected) => {
    expect(linkOnSite(page, href)).toBe(expected);
  });

  it('to an image is relative to the page that includes the document', () => {
    expect(imageOnSite('project/example-app.md', 'media/live-light.webp')).toBe(
      '../../examples/nestjs-angular/media/live-light.webp',
    );
    expect(imageOnSite('performance.md', 'performance/app.svg')).toBe('./performance/app.svg');
  });
});

describe('the plain text of a page', () => {
  it('has the included document, and no front matter', async () => {
    const text = await plainText(join(root, 'docs/project/overview.md'));
    expect(text).toBe(`${read('README.md')}\n`);
    expect(titleOf(text)).toBe('rx-trade-feed');
    expect(titleOf('no heading')).toBe('');
  });

  it('is listed in llms.txt by groups, if the page exists', () => {
    const items = [
      { text: 'One', link: '/one' },
      { text: 'None', link: '/none' },
      { text: 'Codes', link: '/codes/', items: [{ text: 'A', link: '/codes/a' }] },
    ];
    const titles = { one: 'One', 'codes/index': 'Codes', 'codes/a': 'A' };
    const groups = [{ text: 'Guides', items }];
    expect(llmsText({ title: 'T', description: 'D', groups, titles })).toBe(
      '# T\n\n> D\n\n## Guides\n\n- [One](/one.md)\n- [Codes](/codes/index.md)\n- [A](/codes/a.md)\n',
    );
  });
});

it('the search splits a code into the code and its words', () => {
  expect(tokenize('the code connection-replaced, 4001')).toEqual([
    ...['code', 'connection-replaced', 'connection', 'replaced', '4001'],
  ]);
});

describe('a live diagram', () => {
  const labelsOf = (run: ReturnType<typeof windowRun>, row: number) =>
    run.rows[row]!.messages.map(({ label }) => label);

  it('of windows marks those that an outage overlaps', () => {
    const options = { lengthMs: 1_000, everyMs: 1_000, outageAtMs: 1_500, outageMs: 700 };
    expect(labelsOf(windowRun(options), 1)).toEqual(['3', '2+', '2+', '3', '4']);
    expect(labelsOf(windowRun({ ...options, outageMs: 0 }), 1)).toEqual(['3', '4', '3', '3', '4']);
  });

  it('of waits has one row for each client, with equal times without jitter', () => {
    const options = { initialDelayMs: 500, factor: 2, maxDelayMs: 30_000, jitter: 'none', failures: 2, clients: 2 };
    const times = backoffRun(options).rows.map(({ messages }) => messages.map(({ at }) => at));
    expect(times).toEqual([
      [0, 500, 1_500, 1_500],
      [0, 500, 1_500, 1_500],
    ]);
    const [first, second] = backoffRun({ ...options, jitter: 'full' }).rows;
    expect(first!.messages[1]!.at).not.toBe(second!.messages[1]!.at);
  });
});
