module.exports = require('rxjs').fetch;
