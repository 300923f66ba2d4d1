// The search of the site. It runs in the page, over an index with all sections. VitePress copies these functions into the page, so they use nothing
// from outside.

/** Returns the words of a text without the shortest common ones. A code with dashes is one word, and its parts are words as well. */
export const tokenize = (text) =>
  [...text.matchAll(/[\p{L}\p{N}]+(?:[-.][\p{L}\p{N}]+)*/gu)].flatMap(([word]) => {
    if (/^(a|an|and|in|is|it|of|on|or|the|to)$/i.test(word)) return [];
    const parts = word.split(/[-.]/);
    return parts.length > 1 ? [word, ...parts] : [word];
  });

/** Returns the weight of a section: the beginning of a page counts more, and the reference of names, the project and explanations less. */
export const weightOf = (id, _term, { titles }) => {
  const weight = titles.length === 0 ? 2 : 1;
  if (id.startsWith('/api/')) return weight / 4;
  return /^\/(examples\/|project\/|architecture|how-it-works|performance|reliability)/.test(id) ? weight / 3 : weight;
};

/** Headings count more than text. */
export const searchOptions = {
  miniSearch: {
    options: { tokenize },
    searchOptions: { fuzzy: 0.15, prefix: true, boost: { title: 4, titles: 2, text: 1 }, boostDocument: weightOf },
  },
};
