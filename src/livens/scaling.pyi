from livens.schemes.scaling import *
