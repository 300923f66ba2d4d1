// The search of the site. It runs in the page, over an index with all sections. VitePress copies these functions into the page, so they use nothing
// from outside.

/**
 * Returns the words of a text without the shortest common ones. A code with dashes is one word, and its parts are words as well. A name such as
 * `shareFeed` in a query, and in the title of its page of the reference, is also the word `=====shareFeed`, which no typing error reaches.
 *
 * @param field - the field of a section; `undefined` for a query, which also gets words from the titles of the pages that answer it
 */
export const tokenize = (text, field) => {
  const synonyms = [
    [/getting[- ]started|quick[- ]?start|tutorial/gi, 'first frame'],
    [/back[- ]?pressure/gi, '$& slow consumers'],
    [/\b(throttl|debounc|sampl)\w*/gi, '$& conflation'],
    [/\bback-?off\b/gi, '$& reconnecting'],
    [/\bfor await\b|async iter(able|ator)s?/gi, '$& for-await loop'],
    [/\bweb-?hooks?\b/gi, '$& whale alert'],
    [/\b(AbortSignal|AbortController|useSyncExternalStore|useEffect|rxjs ?9)\b/gi, '$& interop'],
    [
      /\b(kafka|jetstream|consumer(?!-)|durable|event ?sourcing|record(ing)?s?|replay)\b/gi,
      '$& keep read again resume',
    ],
    [/^reconnects?$/gi, '$& reconnecting'],
    [/^gaps?$/gi, '$& events'],
    [/\b(confirmations?|confirmed|re-?orgs?|mempool|viem|outcomes?)\b/gi, '$& outcomes became'],
    [/\bTS\d{4,5}\b/gi, '$& typescript'],
    [/\bsimulat\w*/gi, '$& test your app'],
    [/\bslower\b/gi, '$& slow consumers'],
    [/\b(safe|leak\w*)\b/gi, '$& security'],
    [/\bversions?\b/gi, '$& runtimes'],
    [/\bworker threads?\b/gi, '$& stalled process'],
    [/\b(esbuild|webpack|rollup|vite|bundlers?)\b/gi, '$& bundling'],
  ];
  const title = field === 'title' ? /^[A-Z][\w ]+: ([\w$]+)/.exec(text)?.[1] : undefined;
  const names = field === undefined ? text.match(/[\w$]+/g) : [title];
  const isName = (word) => /[a-z0-9][A-Z]|\w\$$/.test(word ?? '');
  const expanded = field === undefined ? synonyms.reduce((all, [word, words]) => all.replace(word, words), text) : text;
  const words = [...expanded.matchAll(/[\p{L}\p{N}]+(?:[-.][\p{L}\p{N}]+)*/gu)].flatMap(([word]) => {
    if (/^(a|an|and|in|is|it|of|on|or|the|to)$/i.test(word)) return [];
    const parts = word.split(/[-.]/);
    return parts.length > 1 ? [word, ...parts] : [word];
  });
  return [...words, ...(names ?? []).filter(isName).map((name) => `=====${name}`)];
};

/**
 * Returns the weight of a section: the beginning of a page and the section of a failure count more; the project and explanations less. The
 * reference of names is last, unless the query is the name.
 */
export const weightOf = (id, term, { titles }) => {
  const weight = titles.length === 0 || /^\/failures\/\w/.test(id) ? 2 : 1;
  if (id.startsWith('/api/')) return term.startsWith('=') ? weight : weight / 1_000_000;
  return /^\/(examples\/|project\/|architecture|how-it-works|performance|reliability)/.test(id) ? weight / 3 : weight;
};

/** Headings count more than text. A number or a name matches itself alone: 4001 is neither 1001 nor 400. */
export const searchOptions = {
  miniSearch: {
    options: { tokenize },
    searchOptions: {
      fuzzy: (term) => (/\d|^=/.test(term) ? false : 0.15),
      prefix: (term) => !/\d|^=/.test(term),
      boost: { title: 4, titles: 2, text: 1 },
      boostDocument: weightOf,
    },
  },
};

const rendered = new Map();

/** Adds the status or close code that only one failure has to its heading: `## server-shutdown (close 1001)`. */
const withNumbers = (source) =>
  source.replaceAll(/^## (\S+)(?=\n\n\*\*.+ on ((?:HTTP|close) \d+)(?:\.| `))/gm, '## $1 ($2) {#$1}');

/**
 * Renders a page for the index. The default also colors its code, which takes most of the time, and the builds for browsers and for the server each
 * render all pages.
 */
export const renderForSearch = (source, env, markdown) => {
  if (!rendered.has(source)) {
    const { highlight } = markdown.options;
    markdown.options.highlight = (code) => `<pre><code>${markdown.utils.escapeHtml(code)}</code></pre>`;
    try {
      rendered.set(source, markdown.render(withNumbers(source), env));
    } finally {
      markdown.options.highlight = highlight;
    }
  }
  return rendered.get(source);
};
