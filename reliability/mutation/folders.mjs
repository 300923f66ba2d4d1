/** The folders of src that are mutated, the quickest first. Each is held by the tests of the folder of the same name in test. */
export const folders = ['reconnect', 'protocol', 'operators', 'transport'];

/** Where Stryker leaves the report of a folder. */
export const reportOf = (folder) => `temp/mutation/${folder}.json`;
