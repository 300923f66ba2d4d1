/** Returns the anchor of a heading as repositories and typedoc write it: lower case, dashes for spaces, no punctuation. */
export const headingAnchor = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
