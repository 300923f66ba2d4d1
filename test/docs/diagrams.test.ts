import { describe, expect, it } from '@jest/globals';
import { read } from './fences.js';
import { siteLibrary } from './site.js';

const { diagrams, runNamed, messagesOf, altTextOf, diagramSvg } = await siteLibrary(
  ...['diagrams/diagrams.mjs', 'diagrams/run.mjs', 'diagrams/svg.mjs'],
);

const names = Object.keys(diagrams);

describe('a diagram of an operator', () => {
  it.each(names)('%s shows what the operator does: run scripts/site/diagrams/update.mjs', async (name) => {
    expect(read(`docs/diagrams/${name}.svg`)).toBe(diagramSvg(await runNamed(name)));
  });

  it('is on the page of the diagrams, each once, with its text', async () => {
    const images = [...read('docs/diagrams/index.md').matchAll(/^!\[(.*)\]\((.+)\.svg\)$/gm)];
    expect(images.map(([, , name]) => name).sort()).toEqual([...names].sort());
    for (const [, text, name = ''] of images) expect(text).toBe(altTextOf(await runNamed(name)));
  });
});

describe('a line of messages', () => {
  it('has one slot of 100 ms for each letter, and one for a group', () => {
    const shown = messagesOf('(TO)a-b|').map(({ at, label, kind }) => [at, label, kind]);
    expect(shown).toEqual([
      [0, 'ticket', 'event'],
      [0, 'opened', 'event'],
      [100, 'a', 'frame'],
      [300, 'b', 'frame'],
      [400, '', 'end'],
    ]);
  });

  it('has a gap after the opening that ends an outage, with its times', () => {
    const values = messagesOf('O-X--O').map(({ value }) => value);
    expect(values.at(-1)).toMatchObject({ type: 'gap', from: 200, to: 500, durationMs: 300 });
  });
});
