\echo Use "CREATE EXTENSION streamfilter" to load this file. \quit

