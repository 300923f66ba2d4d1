import type { Token } from './payload';

/** A part of a text: what was searched for, or what is between. */
export interface Part {
  readonly text: string;
  /** Which match it belongs to: 0, 1, …; `undefined`: to none. */
  readonly match: number | undefined;
}

/** A token, or the part of one that a match begins or ends in. */
export type TokenPart = Part & Pick<Token, 'kind'>;

const mostMatches = 1_000;

/** Splits a text where it holds what is searched for, in lower case. */
export const splitByMatches = (text: string, wanted: string): readonly Part[] =>
  splitTokens([{ kind: 'plain', text }], wanted);

/** The same for the hex digits of bytes, which are shown with spaces between them. */
export const splitHex = (text: string, wanted: string): readonly Part[] =>
  splitTokens([{ kind: 'plain', text, isAdded: (letter) => letter === ' ' }], wanted.replaceAll(' ', ''));

/** Splits tokens where they hold what is searched for, also across several of them. Characters that only the page added are passed over. */
export const splitTokens = (tokens: readonly Token[], wanted: string): readonly TokenPart[] => {
  if (wanted === '') return tokens.map(({ kind, text }) => ({ kind, text, match: undefined }));
  const matches = matchesIn(tokens, wanted);
  let start = 0;
  let next = 0;
  return tokens.flatMap(({ kind, text }) => {
    const parts: TokenPart[] = [];
    const end = start + text.length;
    let done = start;
    const part = (until: number, match?: number) => {
      if (until > done) parts.push({ kind, text: text.slice(done - start, until - start), match });
      done = Math.max(done, until);
    };
    for (; next < matches.length; next += 1) {
      const [from, to] = matches[next] as Match;
      if (from >= end) break;
      part(from);
      part(Math.min(to, end), next);
      // The rest of it is in the next token.
      if (to > end) break;
    }
    part(end);
    start = end;
    return parts;
  });
};

type Match = readonly [from: number, to: number];

const matchesIn = (tokens: readonly Token[], wanted: string): readonly Match[] => {
  const places: number[] = [];
  let searched = '';
  let start = 0;
  for (const { text, isAdded } of tokens) {
    for (let index = 0; index < text.length; index += 1) {
      const letter = text[index] as string;
      if (isAdded?.(letter, index)) continue;
      // A letter that has another length in lower case would move all that follow.
      const lower = letter.toLowerCase();
      searched += lower.length === 1 ? lower : letter;
      places.push(start + index);
    }
    start += text.length;
  }
  const matches: Match[] = [];
  for (let at = searched.indexOf(wanted); at >= 0 && matches.length < mostMatches;) {
    matches.push([places[at] as number, (places[at + wanted.length - 1] as number) + 1]);
    at = searched.indexOf(wanted, at + wanted.length);
  }
  return matches;
};
