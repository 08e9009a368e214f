from livens.schemes.tableaus import *
