import { describe, expect, it } from '@jest/globals';
import { pinnedLine, screen, sizeOf } from '../../../src/cli/view/terminal.js';
import { FakeOutput } from '../support/fake-output.js';

describe('screen', () => {
  it('draws over the last picture without clearing it first, and restores the terminal', () => {
    const output = new FakeOutput({ columns: 20, rows: 5 });
    const picture = screen(output);
    picture.draw(['one', 'two']);
    picture.draw(['three']);
    picture.close();
    expect(output.text).toBe(
      '\x1b[?1049h\x1b[?25l' +
        '\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J' +
        '\x1b[Hthree\x1b[K\x1b[J' +
        '\x1b[?25h\x1b[?1049l',
    );
  });
});

describe('sizeOf', () => {
  it.each([
    [
      { columns: 20, rows: 5 },
      { columns: 20, rows: 5 },
    ],
    [
      { columns: 0, rows: 0 },
      { columns: 80, rows: 24 },
    ],
    [{}, { columns: 80, rows: 24 }],
  ])('of %j is %j', (size, expected) => {
    expect(sizeOf(new FakeOutput(size))).toEqual(expected);
  });
});

describe('pinnedLine', () => {
  it('removes the bottom row from the scrolling region, draws there, and restores it', () => {
    const output = new FakeOutput({ columns: 20, rows: 10 });
    const line = pinnedLine(output);
    line.draw('the status');
    line.close();
    expect(line.columns).toBe(20);
    expect(output.text).toBe(
      '\n\x1b7\x1b[1;9r\x1b8\x1b[1A' +
        '\x1b7\x1b[10;1H\x1b[2Kthe status\x1b8' +
        '\x1b7\x1b[r\x1b8\x1b7\x1b[10;1H\x1b[2K\x1b8\r\x1b[K',
    );
  });

  it('follows the size of the terminal', () => {
    const output = new FakeOutput({ columns: 20, rows: 10 });
    const line = pinnedLine(output);
    line.draw('the status');
    output.text = '';
    output.rows = 12;
    output.emit('resize');
    expect(output.text).toBe(
      '\x1b7\x1b[r\x1b8\x1b7\x1b[10;1H\x1b[2K\x1b8\x1b7\x1b[1;11r\x1b8\x1b7\x1b[12;1H\x1b[2Kthe status\x1b8',
    );
    line.close();
    output.text = '';
    output.emit('resize');
    expect(output.text).toBe('');
  });

  it('assumes 24 by 80 for a terminal without a size', () => {
    const output = new FakeOutput({});
    const line = pinnedLine(output);
    expect(line.columns).toBe(80);
    expect(output.text).toContain('\x1b[1;23r');
    line.close();
  });
});
