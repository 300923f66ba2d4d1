import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { DecodeError, decodeFailure, jsonPointer } from '../../../src/operators/decode/decode-failure.js';
import { frameOf } from '../stream.js';

describe('decodeFailure', () => {
  const payload = `{"account":"${'secret'.repeat(50)}"}`;
  const issues = Array.from({ length: 25 }, (_, n) => ({ path: `/${n}`, message: `${n}${'m'.repeat(300)}` }));

  it('contains the fields of the frame and the first ten issues, with messages of at most 200 characters', () => {
    const failure = decodeFailure(frameOf(payload, 5, 2), issues);
    expect(failure).toMatchObject({ type: 'decode-failure', feed: 'market', connection: 2, receivedAt: 5, bytes: 314 });
    expect(failure.issues.map(({ path }) => path)).toEqual(issues.slice(0, 10).map(({ path }) => path));
    for (const { message } of failure.issues) expect(message).toMatch(/^\dm{198}…$/);
    expect(decodeFailure(frameOf(''), [{ path: '', message: 'm'.repeat(200) }]).issues[0]?.message).toBe(
      'm'.repeat(200),
    );
  });

  it('contains the first 200 characters of a long path', () => {
    const pathOf = (path: string) => decodeFailure(frameOf(''), [{ path, message: '' }]).issues[0]?.path;
    expect(pathOf(`/a/${'b'.repeat(5_000)}`)).toBe(`/a/${'b'.repeat(196)}…`);
    expect(pathOf(`/${'b'.repeat(199)}`)).toBe(`/${'b'.repeat(199)}`);
  });

  it('does not contain the payload in any form', () => {
    const failure = decodeFailure(frameOf(payload), [{ path: '', message: 'x' }]);
    const shown = [
      inspect(failure, { depth: 9 }),
      JSON.stringify(failure),
      inspect(new DecodeError(failure), { depth: 9 }),
    ];
    for (const text of shown) expect(text).not.toContain('secret');
  });
});

describe('DecodeError', () => {
  it('describes the frame, the path, and what to do', () => {
    const error = new DecodeError(decodeFailure(frameOf('12'), [{ path: '/n', message: 'expected number' }]));
    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe('DecodeError');
    expect(error.message).toBe(
      "A frame of market (2 bytes) does not match the codec: /n: expected number. Correct the codec, or set `onInvalid` to 'drop' or to a function: then the stream continues after such a frame.",
    );
    expect(error.stack).toContain('DecodeError');
  });

  it('describes a problem of the whole document, also when a schema has no message', () => {
    expect(new DecodeError(decodeFailure(frameOf('1'), [{ path: '', message: 'no' }])).message).toContain(
      ': the document: no.',
    );
    expect(new DecodeError(decodeFailure(frameOf('1'), [])).message).toContain(': the document: refused.');
  });
});

describe('jsonPointer', () => {
  it('joins keys as RFC 6901 defines', () => {
    expect(jsonPointer([])).toBe('');
    expect(jsonPointer(['a', 0, 'b/c', 'd~e', '', Symbol('s')])).toBe('/a/0/b~1c/d~0e//Symbol(s)');
  });
});
