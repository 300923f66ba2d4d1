import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { serialize } from 'node:v8';
import { format, inspect } from 'node:util';
import { isCredential, redactor, Secret } from '../../src/protocol/secret.js';
import { cases } from '../support/cases.js';
import { character } from '../support/character.js';

const marker = 'sk-planted-4711';
const secret = new Secret(marker);

describe('Secret', () => {
  it.each<[string, (secret: Secret) => string]>([
    ['String()', (s) => String(s)],
    // eslint-disable-next-line @typescript-eslint/restrict-template-expressions -- like a careless log line
    ['a template', (s) => `${s}`],
    ['util.format', (s) => format('%s', s)],
    ['util.inspect with hidden properties', (s) => inspect(s, { showHidden: true, depth: null, getters: true })],
    ['JSON', (s) => JSON.stringify({ deep: [s] }).slice('{"deep":["'.length, -'"]}'.length)],
  ])('is printed as [secret] by %s', (_how, print) => {
    expect(print(secret)).toBe('[secret]');
  });

  it.each<[string, (secret: Secret) => unknown]>([
    ['all of its own properties', (s) => Reflect.ownKeys(s).map((key) => Reflect.get(s, key) as unknown)],
    ['a copy', (s) => [{ ...s }, Object.entries(s)]],
    ['a structured clone', (s) => structuredClone(s)],
    ['a serialization by v8', (s) => serialize(s).toString('latin1')],
    ['util.inspect without its own method', (s) => inspect(s, { customInspect: false, showHidden: true, depth: null })],
    ['the text of an error made with it', (s) => inspect(new Error('x', { cause: s }), { showHidden: true })],
  ])('is not in %s', (_what, list) => {
    expect(inspect(list(secret), { customInspect: false, showHidden: true, depth: null })).not.toContain(marker);
  });

  it.each(['', ' ', 'a b', 'a\r\nb', 'ключ', 7 as unknown as string])(
    "can't contain what isn't valid in a header: %j",
    (value) => {
      expect(() => new Secret(value)).toThrow(new TypeError('A secret must be one or more visible ASCII characters.'));
    },
  );

  it("can't exceed 16 KiB, and the error shows only how long the value is", () => {
    expect(new Secret(marker.repeat(1_000)).reveal()).toHaveLength(15_000);
    expect(() => new Secret('x'.repeat(16_385))).toThrow(
      new TypeError('A secret must be one or more visible ASCII characters, got 16385 characters (at most 16384).'),
    );
  });
});

describe('redactor', () => {
  it('hides every occurrence of every secret, and no other text', () => {
    const redact = redactor(secret, new Secret('tkt'));
    expect(redact(`a ${marker} b tkt c ${marker}`)).toBe('a [secret] b [secret] c [secret]');
    expect(redact('nothing here')).toBe('nothing here');
  });

  it('hides a secret completely, even if it begins with another or is part of one', () => {
    const redact = redactor(new Secret('key-1'), new Secret('key-1.ticket'), new Secret('secret'));
    expect(redact('key-1.ticket, key-1, a secret')).toBe('[secret], [secret], a [secret]');
  });

  it('does not treat a secret as a pattern', () => {
    expect(redactor(new Secret('$&.*'))('a $&.* b')).toBe('a [secret] b');
  });

  it('ignores case, because errors write host names in lower case', () => {
    expect(redactor(new Secret('Tkt+1'))('ENOTFOUND tkt+1.invalid')).toBe('ENOTFOUND [secret].invalid');
  });

  it("ignores anything that isn't a Secret, such as a key function", () => {
    expect(redactor(undefined, () => 'key', 'text')('key and text')).toBe('key and text');
  });

  it('hides several secrets of the longest possible length', () => {
    const [key, ticket] = ['k*'.repeat(8_192), '(t'.repeat(8_192)];
    expect(redactor(new Secret(key), new Secret(ticket))(`a ${key} b ${ticket.toUpperCase()} c`)).toBe(
      'a [secret] b [secret] c',
    );
  });

  it('keeps characters around a secret that change length in lower case', () => {
    expect(redactor(secret)(`İİİ ${marker} İ`)).toBe('İİİ [secret] İ');
  });

  it('leaves no secret in any text', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.stringMatching(/^[!-Z^-~]{8,}$/), (before, after, value) => {
        const hidden = redactor(new Secret(value))(before + value + after);
        expect(hidden).not.toContain(value);
        expect(hidden).toContain('[secret]');
      }),
      { numRuns: cases(100) },
    );
  });
});

describe('isCredential', () => {
  it('accepts nothing that could end a header line', () => {
    fc.assert(
      fc.property(fc.string({ unit: character }), (text) => {
        const visible = [...text].every((char) => char > ' ' && char < '\u007f');
        expect(isCredential(text)).toBe(text !== '' && visible);
      }),
      { numRuns: cases(100) },
    );
  });
});
