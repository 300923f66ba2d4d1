import type { Token } from './payload';

/** A part of a text: a match, or the text between two matches. */
export interface Part {
  readonly text: string;
  /** The index of the match: 0, 1, …; `undefined` between matches. */
  readonly match: number | undefined;
}

/** A token, or a part of a token if a match begins or ends in it. */
export type TokenPart = Part & Pick<Token, 'kind'>;

const mostMatches = 1_000;

/** Splits a text at the matches of a lower-case query. */
export const splitByMatches = (text: string, query: string): readonly TokenPart[] =>
  splitTokens([{ kind: 'plain', text }], query);

/** Splits hex digits, which are shown with spaces, at the matches of a query. */
export const splitHex = (text: string, query: string): readonly TokenPart[] =>
  splitTokens([{ kind: 'plain', text, isAdded: (letter) => letter === ' ' }], query.replaceAll(' ', ''));

/** Splits tokens at the matches of a query. A match may span several tokens. Characters that the page added are ignored. */
export const splitTokens = (tokens: readonly Token[], query: string): readonly TokenPart[] => {
  if (query === '') return tokens.map(({ kind, text }) => ({ kind, text, match: undefined }));
  const matches = matchesIn(tokens, query);
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
      // The rest of the match is in the next token.
      if (to > end) break;
    }
    part(end);
    start = end;
    return parts;
  });
};

type Match = readonly [from: number, to: number];

const matchesIn = (tokens: readonly Token[], query: string): readonly Match[] => {
  const places: number[] = [];
  let searched = '';
  let start = 0;
  for (const { text, isAdded } of tokens) {
    for (let index = 0; index < text.length; index += 1) {
      const letter = text[index] as string;
      if (isAdded?.(letter, index)) continue;
      // A letter with another length in lower case would shift all following positions.
      const lower = letter.toLowerCase();
      searched += lower.length === 1 ? lower : letter;
      places.push(start + index);
    }
    start += text.length;
  }
  const matches: Match[] = [];
  for (let at = searched.indexOf(query); at >= 0 && matches.length < mostMatches;) {
    matches.push([places[at] as number, (places[at + query.length - 1] as number) + 1]);
    at = searched.indexOf(query, at + query.length);
  }
  return matches;
};
