import { describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { documents, fencesOf, proseOf, read, root } from './fences.js';
import { siteLibrary } from './site.js';

const { promises, withClusterGoals, ...ofDiagrams } = await siteLibrary(
  ...['promises.mjs', 'cluster-goals.mjs'],
  ...['diagrams/live.mjs', 'diagrams/diagrams.mjs', 'diagrams/run.mjs', 'diagrams/svg.mjs'],
);
const resultsOfChecks = (await siteLibrary('../../reliability/lib/pages.mjs')).readResults;
const { performancePages, reliabilityPages, fillFigures, filledPages } = await siteLibrary(
  ...['../../bench/lib/update-docs.mjs', '../../reliability/lib/pages.mjs'],
  ...['../../bench/lib/fill.mjs', '../../bench/lib/pages.mjs'],
);
const { diagrams, runNamed, altTextOf, diagramSvg, windowRun, backoffRun } = ofDiagrams;

// The anchors of repository pages and typedoc: lower case, dashes for spaces, no punctuation.
const anchorsOf = (file: string): readonly string[] =>
  [...proseOf(file).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );

const problemOf = (file: string, link: string): string | undefined => {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? file : join(dirname(file), path);
  if (!existsSync(join(root, target))) return `${file}: ${link}: the file does not exist`;
  const isMissing = anchor !== undefined && !anchorsOf(target).includes(anchor);
  return isMissing ? `${file}: ${link}: the heading does not exist` : undefined;
};

it.each([...documents(), 'examples/README.md'])('every relative link of %s has a target', (file) => {
  const links = [...proseOf(file).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link as string);
  expect(links.flatMap((link) => problemOf(file, link) ?? [])).toEqual([]);
});

it('the goals of a cluster are those of the results: run scripts/site/update.mjs cluster-goals', () => {
  expect(read('docs/reliability/replicas.md')).toBe(withClusterGoals(read('docs/reliability/replicas.md')));
});

it('the lines for nginx in docs/how-to/proxies.md are those of the nginx that the tests run', () => {
  const tested = read('test/peers/nginx.mjs')
    .split('\n')
    .map((line) => line.trim());
  const fences = fencesOf('docs/how-to/proxies.md').filter(({ language }) => language === 'nginx');
  const lines = fences.flatMap(({ code }) => code.split('\n')).map((line) => line.trim());
  expect(lines).toContain('proxy_set_header Upgrade $http_upgrade;');
  expect(lines.filter((line) => line !== '' && !tested.includes(line))).toEqual([]);
});

describe('the promises of the landing page', () => {
  it('have the figures of the guides', () => {
    for (const { figure } of promises()) expect(figure).toMatch(/^\d[\d\u00a0]*(\.\d)?(×| million)?$/);
    expect(promises()).toHaveLength(3);
  });

  const soakOf = (measured: string) => {
    const results = resultsOfChecks();
    const goals = results['soak']!.goals.map((goal) => ({ ...goal, measured }));
    return { ...results, soak: { ...results['soak']!, goals } };
  };

  it('are not shown without their result, or if the soak run lost a frame', () => {
    expect(() => promises(undefined, { ...resultsOfChecks(), soak: { goals: [] } })).toThrow('has no rule "sent =');
    expect(() => promises(undefined, soakOf('5 = 3 + 1'))).toThrow(
      'The soak run lost frames without a gap: 5 = 3 + 1.',
    );
    expect(promises(undefined, soakOf('5 = 3 + 2'))).toHaveLength(3);
  });
});

describe('the pages of performance and reliability', () => {
  it.each<[string, () => Readonly<Record<string, string>>]>([
    ['npm run bench -- all --write', performancePages],
    ['node reliability/lib/update-docs.mjs', reliabilityPages],
  ])('have the figures and tables of the results: run %s', (_command, pagesOf) => {
    for (const [file, text] of Object.entries(pagesOf())) expect([file, read(file)]).toEqual([file, text]);
  });

  it.each(['docs/performance.md', 'docs/reliability.md'])('%s is for people: at most 1,200 words', (file) => {
    const prose = read(file).replaceAll(/<!--.*?-->/g, ' ');
    expect(prose.split(/[\s|]+/).length).toBeLessThanOrEqual(1_200);
    const cells = prose.split('\n').filter((line) => line.startsWith('|'));
    expect(cells.join(' ').split(/[\s|]+/).length).toBeLessThan(prose.split(/[\s|]+/).length / 3);
  });

  it('name an unknown figure, and a section that no page has', () => {
    const page = 'It takes <!-- =a -->old<!-- = --> ms.';
    expect(fillFigures(page, { a: () => '3' })).toBe('It takes <!-- =a -->3<!-- = --> ms.');
    expect(() => fillFigures(page, { b: () => '3' })).toThrow('There is no figure a.');
    const sections = { nowhere: () => '' };
    expect(() => filledPages('performance', { mark: 'bench', sections, figures: {} })).toThrow('the sections nowhere.');
  });
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

const names = Object.keys(diagrams);

describe('a diagram of an operator', () => {
  it.each(names)('%s shows what the operator does: run scripts/site/update.mjs diagrams', async (name) => {
    expect(read(`docs/diagrams/${name}.svg`)).toBe(diagramSvg(await runNamed(name)));
  });

  it('is on the page of the diagrams, each once, with its text', async () => {
    const images = [...read('docs/diagrams/index.md').matchAll(/^!\[(.*)\]\((.+)\.svg\)$/gm)];
    expect(images.map(([, , name]) => name).sort()).toEqual([...names].sort());
    for (const [, text, name = ''] of images) expect(text).toBe(altTextOf(await runNamed(name)));
  });
});
